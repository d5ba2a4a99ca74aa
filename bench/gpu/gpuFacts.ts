/** Prints a line of JSON: what the package tells of the GPU. Fails with the reason when there is none. */
import { cuda } from 'torchformer';

const [major, minor] = cuda.capability();
const { free, total } = cuda.memory();
console.log(
  JSON.stringify({
    gpus: cuda.deviceCount(),
    name: cuda.name(),
    capability: `${major}.${minor}`,
    free,
    total,
  }),
);
