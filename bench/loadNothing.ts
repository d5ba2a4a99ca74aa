/** A process of suite `load`: the time of Node.js without us. */
console.log(1 + 1);

export {};
