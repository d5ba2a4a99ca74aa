/** A process of suite `load`: our side. */
import { tensor } from 'torchformer';

console.log(tensor(1).add(1).item());
