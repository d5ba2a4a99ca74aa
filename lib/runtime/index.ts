export { TorchError, type TorchErrorCode } from './errors.js';
export { examineRuntime, type Examination } from './doctor.js';
export type { LibtorchFolder } from './libtorchFolder.js';
export { setUpLibtorch, type SetupOptions } from './setup.js';
