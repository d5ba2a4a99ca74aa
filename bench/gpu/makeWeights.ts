/**
 * Writes the initial weights of a size and prints the number of parameters as one line of JSON.
 *
 * Arguments: size, file.
 */
import { writeWeights } from '../weights.js';
import { gpuSizes, type GpuSizeName } from './gpuSizes.js';

const [name, file] = process.argv.slice(2) as [GpuSizeName, string];
console.log(JSON.stringify({ parameters: await writeWeights(gpuSizes[name].model, file) }));
