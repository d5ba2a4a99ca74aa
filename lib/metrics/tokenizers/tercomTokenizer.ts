import { splitWords } from '../whiteSpace.js';

/** How {@link tercomWords} prepares a text. */
export interface TercomSettings {
  readonly normalized: boolean;
  readonly noPunct: boolean;
  readonly asianSupport: boolean;
  readonly caseSensitive: boolean;
}

/** The words of a text as Tercom, the original program for TER, prepares them. */
export function tercomWords(line: string, settings: TercomSettings): string[] {
  const { normalized, noPunct, asianSupport, caseSensitive } = settings;
  let text = caseSensitive ? line : line.toLowerCase();
  if (text === '') return [];
  if (normalized) {
    text = normalize(text);
    if (asianSupport) text = separateAsian(text);
  }
  if (noPunct) {
    text = text.replace(/[.,?:;!"()]/gu, '');
    if (asianSupport) text = text.replace(asianPunctuation, '').replace(fullWidth, '');
  }
  return splitWords(text);
}

function normalize(text: string): string {
  const joined = text
    .replaceAll('\n-', '')
    .replaceAll('\n', ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>');
  return (
    ` ${joined} `
      .replace(/([{-~\[-` -&(-+:-@/])/gu, ' $1 ')
      // Possessives. One at the end of the text is followed by the space that was added.
      .replaceAll("'s ", " 's ")
      .replace(/([^0-9])([.,])/gu, '$1 $2 ')
      .replace(/([.,])([^0-9])/gu, ' $1 $2')
      .replace(/([0-9])(-)/gu, '$1 $2 ')
  );
}

/** Makes each Chinese character a word. Kana stay joined: Tercom's rules for them apply to no text. */
function separateAsian(text: string): string {
  return text
    .replace(/([\u4e00-\u9fff\u3400-\u4dbf])/gu, ' $1 ')
    .replace(/([\u31c0-\u31ef\u2e80-\u2eff])/gu, ' $1 ')
    .replace(/([\u3300-\u33ff\uf900-\ufaff\ufe30-\ufe4f])/gu, ' $1 ')
    .replace(/([\u3200-\u3f22])/gu, ' $1 ')
    .replace(asianPunctuation, ' $1 ')
    .replace(fullWidth, ' $1 ');
}

const asianPunctuation = /([\u3001\u3002\u3008-\u3011\u3014-\u301f\uff61-\uff65\u30fb])/gu;
const fullWidth = /([\uff0e\uff0c\uff1f\uff1a\uff1b\uff01\uff02\uff08\uff09])/gu;
