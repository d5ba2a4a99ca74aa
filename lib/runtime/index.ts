export { TorchError, type TorchErrorCode } from './errors.js';
export { examineRuntime, type ExamineOptions } from './doctor.js';
export type { RuntimeReport } from './runtimeReport.js';
export type { LibtorchFolder } from './libtorchFolder.js';
export { setUpLibtorch, type SetupOptions } from './setup.js';
