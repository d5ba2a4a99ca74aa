// Ends itself while a native job runs and another one waits, and prints when.
import { callAsync, ones } from 'torchformer';
const product = () => callAsync('aten::mm', large, large);
let large = ones([512, 512]);
// As long as takes half a second alone.
let milliseconds = 0;
for (;;) {
  const start = performance.now();
  await product();
  milliseconds = performance.now() - start;
  if (milliseconds > 500) break;
  large = ones([large.shape[0] * 2, large.shape[0] * 2]);
}
void product();
for (let waiting = 0; waiting < 50; waiting++) void product();
setTimeout(() => {
  const start = performance.now();
  process.once('exit', () =>
    console.log(JSON.stringify([milliseconds, performance.now() - start])),
  );
  process.exit(5);
}, 20);
