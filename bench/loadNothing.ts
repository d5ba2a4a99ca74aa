/** A process of suite `load`: what Node.js takes without us. */
console.log(1 + 1);

export {};
