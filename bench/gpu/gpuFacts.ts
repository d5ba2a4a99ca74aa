/** Prints what the package reports about the GPU as one line of JSON. Without one, fails with the reason. */
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
