/** Reading and writing tensors and models. */
export {
  findModelFolder,
  loadModel,
  saveModel,
  type LoadedModel,
  type LoadModelOptions,
  type SaveModelOptions,
} from './checkpoint.js';
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
