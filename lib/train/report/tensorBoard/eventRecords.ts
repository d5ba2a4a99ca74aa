/**
 * The records of TensorBoard's event files. The numbers of the fields are those of
 * `tensorboard/compat/proto/{event,summary,tensor,tensor_shape}.proto`.
 */
import { maskedCrc32c } from './crc32c.js';
import { doubleField, floatField, integerField, messageField, textField } from './protobuf.js';

const event = { wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 } as const;
const summaryValue = { tag: 1, simpleValue: 2, tensor: 8, metadata: 9 } as const;
const started = 1;
const stringType = 7;

/** A number of a step. */
export interface ScalarValue {
  readonly tag: string;
  readonly value: number;
}

/** A text of a step, as Markdown. */
export interface TextValue {
  readonly tag: string;
  readonly text: string;
}

/** The first record of every file. */
export function versionRecord(wallTime: number): Buffer {
  return framed([
    doubleField(event.wallTime, wallTime),
    textField(event.fileVersion, 'brain.Event:2'),
  ]);
}

/** TensorBoard forgets what earlier files have of this step and later ones. */
export function restartRecord(wallTime: number, step: number): Buffer {
  return framed([
    ...header(wallTime, step),
    messageField(event.sessionLog, integerField(1, started)),
  ]);
}

/**
 * Values of one step.
 *
 * @param wallTime seconds since 1970
 */
export function summaryRecord(
  wallTime: number,
  step: number,
  values: readonly (ScalarValue | TextValue)[],
): Buffer {
  const fields = values.map((value) =>
    messageField(1, ...('text' in value ? textFields(value) : scalarFields(value))),
  );
  return framed([...header(wallTime, step), messageField(event.summary, ...fields)]);
}

/** A step of 0 is left out, as it is the default. */
function header(wallTime: number, step: number): Buffer[] {
  const time = doubleField(event.wallTime, wallTime);
  return step === 0 ? [time] : [time, integerField(event.step, step)];
}

function scalarFields({ tag, value }: ScalarValue): Buffer[] {
  return [scalarTag(tag), floatField(summaryValue.simpleValue, value)];
}

const scalarTags = new Map<string, Buffer>();

/** Made once, because every step has the same. */
function scalarTag(tag: string): Buffer {
  const known = scalarTags.get(tag);
  if (known !== undefined) return known;
  const made = textField(summaryValue.tag, tag);
  scalarTags.set(tag, made);
  return made;
}

/** A tensor of one string, for the plugin that shows texts. */
function textFields({ tag, text }: TextValue): Buffer[] {
  const shapeOfOne = messageField(2, messageField(2, integerField(1, 1)));
  return [
    textField(summaryValue.tag, tag),
    messageField(summaryValue.tensor, integerField(1, stringType), shapeOfOne, textField(8, text)),
    messageField(summaryValue.metadata, messageField(1, textField(1, 'text'))),
  ];
}

/** A TFRecord of these fields: length, its checksum, data, its checksum. */
function framed(fields: readonly Buffer[]): Buffer {
  const room = Buffer.alloc(12);
  const record = Buffer.concat([room, ...fields, room.subarray(0, 4)]);
  const end = record.length - 4;
  record.writeUInt32LE(end - 12, 0);
  record.writeUInt32LE(maskedCrc32c(record.subarray(0, 8)), 8);
  record.writeUInt32LE(maskedCrc32c(record.subarray(12, end)), end);
  return record;
}
