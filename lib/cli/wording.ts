/** Rewrites messages of the library for the command line, with flags instead of options. */
const flagsOfOptions: readonly (readonly [RegExp, string])[] = [
  [/onMalformed: "skip"/g, '--on-malformed skip'],
  [/\(option delimiter\)/g, '(--delimiter)'],
  [/is read with quoted: false/g, 'is read with --no-quotes'],
  [/nonFinite: 'skip'/g, "(in a script) nonFinite: 'skip'"],
  [/, or read it with invalidUtf8: "replace"/g, ''],
  [
    /a file without a header is read with header: false and columns by number/g,
    'a file needs a first row with the names of its columns',
  ],
  [/setUpLibtorch: a URL needs sha256/g, 'a URL needs --sha256'],
  [/^setUpLibtorch: sha256/g, '--sha256'],
  [/^setUpLibtorch: from/g, '--from'],
  [/^setUpLibtorch: indexUrl/g, '--index-url'],
  [/\blearningRate\b/g, '--lr'],
  [/a warmup or clip/g, 'a --warmup or --clip'],
  [/^trainBpe: vocabSize/g, '--vocab-size'],
  [/^findSpecialIds: (pad|bos|eos)\b/g, '--$1'],
  [/^Translator\.translateLines sampling: topP/g, '--top-p'],
  [/^Translator\.translateLines split: locale/g, '--locale'],
  [/^Translator\.translateLines: /g, ''],
  [/\bnBest\b/g, '--n-best'],
  [/\braise beam to\b/g, 'raise --beam to'],
  [/\bmaxLength\b/g, '--max-length'],
  [/ The model is still in memory: .*$/g, ''],
  [/^estimateTraining: /g, ''],
  [
    /batches of fewer tokens with a larger accumulate/g,
    'a smaller --batch-tokens with a larger --accumulate',
  ],
  [/the optimizer Adafactor/g, '--optimizer adafactor'],
  [/overwrite them \(overwrite: true\)/g, 'use --overwrite'],
  [/pass extend: true/g, 'use --extend'],
  [/, or start a new run from its weights/g, ', or another --out'],
];

/** The message with flags in the place of options, on one line and without control codes. */
export function commandWording(message: string): string {
  const flagged = flagsOfOptions.reduce(
    (text, [option, flag]) => text.replace(option, flag),
    message,
  );
  // The message may contain the content of a broken file; our own line ends are kept.
  return flagged.replace(/[^\P{Cc}\n]+/gu, '?');
}
