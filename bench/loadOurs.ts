/** A process of suite `load`: ours. */
import { tensor } from 'torchformer';

console.log(tensor(1).add(1).item());
