/** Parts and whole models with other norms, orders, positions, activations, ties and biases. */
import { buildWithOptions } from './buildOptions.js';
import { describeExact } from './compare.js';

describeExact('options', buildWithOptions);
