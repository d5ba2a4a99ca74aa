/** What a run computes with. */
import { cpus, totalmem } from 'node:os';
import { packageVersion } from '../../runtime/package.js';
import { cuda } from '../../tensor/cuda.js';
import { native } from '../../tensor/dispatch.js';

/** The machine and the versions of a run. */
export interface Hardware {
  /** `'Zen 3 … 8-Core Processor'`, as the system names it. */
  readonly processor: string;
  /** Logical processors of the machine. */
  readonly cores: number;
  /** Threads that one op uses. */
  readonly threads: number;
  /** Bytes of memory of the machine. */
  readonly memory: number;
  /** Names of the GPUs that can be used. */
  readonly gpus: readonly string[];
  /** `'linux-x64'` */
  readonly platform: string;
  /** Version of Node.js. */
  readonly node: string;
  /** Version of libtorch, and the instructions that it uses: `'2.13.0 (AVX2)'`. */
  readonly libtorch: string;
  /** Version of this package. */
  readonly torchformer: string;
}

/** Describes this machine; loads libtorch. @throws TorchError ERR_NATIVE_LOAD and the like */
export function describeHardware(): Hardware {
  const addon = native();
  const { torch, cpuCapability } = addon.versions();
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    threads: addon.numThreads(),
    memory: totalmem(),
    gpus: Array.from({ length: cuda.deviceCount() }, (_, index) => cuda.name(index)),
    platform: `${process.platform}-${process.arch}`,
    node: process.versions.node,
    libtorch: `${torch} (${cpuCapability})`,
    torchformer: packageVersion(),
  };
}
