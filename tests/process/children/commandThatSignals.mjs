// Runs the command line with the arguments after the first two: a signal, and n. The process sends itself the
// signal at its n-th operation on files.
import { signalAtOperation } from './signalAtOperation.mjs';

const [signal, count, ...args] = process.argv.slice(2);
signalAtOperation(Number(count), signal);
process.argv.splice(2, Infinity, ...args);
await import('../../../bin/torchformer.js');
