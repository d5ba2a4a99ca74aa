/** Reading and writing tensors and models. */
export { averageModels, type AveragedModel, type AverageModelsOptions } from './averageModels.js';
export {
  findModelFolder,
  loadModel,
  saveModel,
  type LoadedModel,
  type LoadModelOptions,
  type SaveModelOptions,
} from './checkpoint.js';
export {
  describeInitialization,
  initializeFrom,
  type Initialization,
  type InitializeOptions,
} from './initializeFrom.js';
export { loadLora, saveLora } from './loraFile.js';
export {
  listCheckpoints,
  selectCheckpoints,
  type CheckpointOrder,
  type RunCheckpoint,
  type SelectCheckpointsOptions,
} from './runCheckpoints.js';
export type { TokenMatch } from './vocabularyRows.js';
export type {
  JsonValue,
  ModelDType,
  ModelFolderConfig,
  TranslationColumns,
} from './modelConfig.js';
export {
  readSafetensors,
  SafetensorsFile,
  writeSafetensors,
  type TensorInfo,
} from './safetensors.js';
