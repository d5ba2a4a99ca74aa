/** Detects files that are not text, and text in other encodings, by their first bytes. */

/** What a file is, and how to convert it to one that can be read. */
export interface ForeignFile {
  /** For example "a bzip2 archive". */
  readonly what: string;
  /** How to convert it. */
  readonly advice: string;
}

interface Signature extends ForeignFile {
  readonly bytes: readonly number[];
}

const codes = (text: string): number[] => [...Buffer.from(text, 'latin1')];
const asCsv = 'export it as CSV in UTF-8';
const iconv = (name: string): string => `convert it with: iconv -f ${name} -t UTF-8`;

const signatures: readonly Signature[] = [
  {
    // The level is a digit; the magic number of a block or of the end follows.
    bytes: codes('BZh'),
    what: 'a bzip2 archive',
    advice: 'unpack it with: bunzip2 --keep',
  },
  { bytes: [0x28, 0xb5, 0x2f, 0xfd], what: 'a zstd archive', advice: 'unpack it with: zstd -d' },
  {
    bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0],
    what: 'an xz archive',
    advice: 'unpack it with: xz -dk',
  },
  { bytes: [0x04, 0x22, 0x4d, 0x18], what: 'an lz4 archive', advice: 'unpack it with: lz4 -d' },
  { bytes: [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], what: 'a 7z archive', advice: 'unpack it first' },
  { bytes: codes('PK\x03\x04'), what: 'a zip archive', advice: 'unpack it first' },
  {
    bytes: [0xd0, 0xcf, 0x11, 0xe0],
    what: 'a Microsoft Office document (.xls, .doc)',
    advice: asCsv,
  },
  { bytes: codes('PAR1'), what: 'a Parquet file', advice: asCsv },
  { bytes: codes('ARROW1'), what: 'an Arrow file', advice: asCsv },
  { bytes: codes('SQLite format 3\0'), what: 'an SQLite database', advice: asCsv },
  { bytes: codes('%PDF-'), what: 'a PDF document', advice: 'export its text' },
  // Before UTF-16, whose byte order mark is a prefix of this one.
  { bytes: [0xff, 0xfe, 0, 0], what: 'UTF-32 text', advice: iconv('UTF-32') },
  { bytes: [0, 0, 0xfe, 0xff], what: 'UTF-32 text', advice: iconv('UTF-32') },
  {
    bytes: [0xff, 0xfe],
    what: 'UTF-16 text (little-endian byte order mark)',
    advice: iconv('UTF-16'),
  },
  {
    bytes: [0xfe, 0xff],
    what: 'UTF-16 text (big-endian byte order mark)',
    advice: iconv('UTF-16'),
  },
];

/** Signatures of readable files, for {@link needsMoreBytes}. */
const gzipBytes = [0x1f, 0x8b, 8];
const utf8Mark = [0xef, 0xbb, 0xbf];

/** The name of the first file in a zip archive begins here. */
const zipName = 30;
const zipHead = zipName + '[Content_Types].xml'.length;

/** Whether the bytes are compressed with gzip. */
export function isGzip(head: Uint8Array): boolean {
  return startsWith(head, gzipBytes);
}

/** Length of the UTF-8 byte order mark that the text begins with: 0 or 3. */
export function lengthOfMark(head: Uint8Array): number {
  return startsWith(head, utf8Mark) ? utf8Mark.length : 0;
}

/** What the file is if it is not UTF-8 text; null if the first bytes do not show it. */
export function foreignFileOf(head: Uint8Array): ForeignFile | null {
  const found = signatures.find(({ bytes }) => startsWith(head, bytes));
  if (found?.what === 'a bzip2 archive') return isBzip2(head) ? found : null;
  if (found?.what === 'a zip archive') return documentOf(head) ?? found;
  return found ?? utf16WithoutMark(head);
}

/**
 * Whether more bytes could change the results of the functions above. There is no fixed minimum,
 * because a line typed by the user must not wait for the next one.
 */
export function needsMoreBytes(head: Uint8Array): boolean {
  if (head.length === 0) return true;
  if (startsWith(head, codes('PK\x03\x04'))) return head.length < zipHead;
  if (startsWith(head, codes('BZh'))) return head.length < 10;
  if (head.length < 4 && mayBeUtf16(head)) return true;
  return [...signatures.map(({ bytes }) => bytes), gzipBytes, utf8Mark].some(
    (bytes) => head.length < bytes.length && startsWith(bytes, head),
  );
}

/** A text may begin with "BZh1", but not with the magic number after it. */
function isBzip2(head: Uint8Array): boolean {
  const mark = Buffer.from(head.subarray(4, 10)).toString('hex');
  return mark === '314159265359' || mark === '177245385090';
}

/** Office documents are zip archives; their first file identifies them. */
function documentOf(head: Uint8Array): ForeignFile | null {
  const name = Buffer.from(head.subarray(zipName, zipHead)).toString('latin1');
  if (/^(\[Content_Types\]\.xml|_rels\/|docProps\/|xl\/)/.test(name)) {
    return { what: 'a Microsoft Office workbook or document (.xlsx, .docx)', advice: asCsv };
  }
  if (name.startsWith('mimetype')) {
    return { what: 'an OpenDocument file (.ods, .odt)', advice: asCsv };
  }
  return null;
}

/** Detects two ASCII characters in UTF-16: every other byte is 0. */
function utf16WithoutMark(head: Uint8Array): ForeignFile | null {
  if (head.length < 4 || !mayBeUtf16(head)) return null;
  const order = head[0] === 0 ? 'BE' : 'LE';
  return { what: 'UTF-16 text without a byte order mark', advice: iconv(`UTF-16${order}`) };
}

function mayBeUtf16(head: Uint8Array): boolean {
  const bytes = [...head.subarray(0, 4)];
  if (bytes.length === 1) return bytes[0] !== 10 && bytes[0] !== 13;
  return [0, 1].some((zero) => bytes.every((byte, index) => (index % 2 === zero) === (byte === 0)));
}

function startsWith(bytes: ArrayLike<number>, start: ArrayLike<number>): boolean {
  if (bytes.length < start.length) return false;
  for (let index = 0; index < start.length; index++) {
    if (bytes[index] !== start[index]) return false;
  }
  return true;
}
