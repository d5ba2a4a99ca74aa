export { TorchError, type TorchErrorCode } from './errors.js';
export { examineRuntime, type ExamineOptions } from './doctor/doctor.js';
export type { RuntimeReport } from './doctor/runtimeReport.js';
export type { LibtorchFolder } from './native/libtorchFolder.js';
export { setUpLibtorch, type SetupOptions } from './setup/setup.js';
