/** Reports on training runs: `log.jsonl`, files for TensorBoard, `report.html`. */
export { JsonLinesLog, type JsonLinesLogOptions } from './jsonLinesLog.js';
export { readLog, type RunLog } from './readLog.js';
export type { DataSummary, EndRecord, MessageRecord, StartRecord } from './logRecord.js';
export { describeHardware, type Hardware } from './hardware.js';
export {
  TensorBoardWriter,
  type TensorBoardWriterOptions,
} from './tensorBoard/tensorBoardWriter.js';
export { ReportWriter, type ReportWriterOptions } from './reportWriter.js';
export { writeReport, type WriteReportOptions } from './writeReport.js';
