/**
 * A process of suite `bridge`: our side.
 *
 * Arguments: calls per measurement, measurements, threads.
 */
import { ops, randn, setNumThreads, type Tensor } from 'torchformer';
import type { BridgeResult } from './bridge.js';

const [calls, repeats, threads] = process.argv.slice(2).map(Number) as [number, number, number];
setNumThreads(threads);
const a = randn([4, 4]);
const b = randn([4, 4]);

/** Seconds per call; the first measurement is a warmup. */
function measure(call: () => Tensor): number[] {
  const times = Array.from({ length: repeats + 1 }, () => {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call().dispose();
    return (performance.now() - start) / 1000 / calls;
  });
  return times.slice(1);
}

const add = ops.aten.add.Tensor;
const result: BridgeResult = {
  seconds: {
    'Tensor.add': measure(() => a.add(b)),
    'ops.aten.add.Tensor': measure(() => add(a, b)),
  },
};
console.log(JSON.stringify(result));
