/** The texts in HTML: found, and replaced by their translations, with everything else left as it is. */
import { Parser } from 'htmlparser2';
import { RequestError } from './requestError.js';

/** A text between tags, without the white space around it. */
interface TextNode {
  /** Where it is in the source, white space included: from `start` to before `end`. */
  readonly start: number;
  end: number;
  /** With character references such as `&amp;` decoded. */
  text: string;
  /** Whether line ends are part of the text, as in `<pre>`. */
  readonly keepsLines: boolean;
}

/** HTML with the texts to translate. */
export interface HtmlTexts {
  /** The texts in order; translate each, and give them to {@link HtmlTexts.withTexts}. */
  readonly texts: readonly string[];
  /** The HTML with these texts in place of its own. They are escaped: none becomes a tag. */
  withTexts(translations: readonly string[]): string;
}

/** Elements whose content is code or data. */
const untranslated = new Set(
  ['script', 'style', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes', 'plaintext'].concat([
    'code',
    'kbd',
    'samp',
    'var',
    'math',
  ]),
);

/**
 * Finds the texts between the tags. Not among them: comments, attributes, the content of scripts,
 * styles, code and form fields, and elements with `translate="no"` or the class `notranslate`.
 * Nothing is executed or fetched.
 *
 * @throws RequestError 400 if tags are nested deeper than browsers nest them
 */
export function parseHtml(html: string): HtmlTexts {
  const nodes = textNodes(html).filter(({ text }) => text.trim() !== '');
  return {
    texts: nodes.map(({ text, keepsLines }) =>
      keepsLines ? text.trim() : text.trim().replace(/\s+/g, ' '),
    ),
    withTexts(translations) {
      let result = '';
      let copied = 0;
      nodes.forEach(({ start, end, text }, index) => {
        const lead = text.slice(0, text.length - text.trimStart().length);
        const trail = text.slice(text.trimEnd().length);
        const translation = translations[index] as string;
        result += html.slice(copied, start) + escapeHtml(lead + translation + trail);
        copied = end;
      });
      return result + html.slice(copied);
    },
  };
}

/** Browsers nest no deeper either; the parser's time for a tag grows with the tags around it. */
const deepestTag = 512;

function textNodes(html: string): TextNode[] {
  const nodes: TextNode[] = [];
  const open: { skip: boolean; keepsLines: boolean }[] = [];
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (open.length >= deepestTag) {
          throw new RequestError(400, `Invalid request: tags are nested deeper than ${deepestTag}`);
        }
        const outer = open.at(-1);
        const { translate, class: classes = '' } = attributes;
        const marked =
          translate === undefined
            ? classes.split(/\s+/).includes('notranslate') || outer?.skip === true
            : translate.toLowerCase() === 'no';
        open.push({
          skip: marked || untranslated.has(name),
          keepsLines: name === 'pre' || outer?.keepsLines === true,
        });
      },
      onclosetag() {
        open.pop();
      },
      ontext(text) {
        const element = open.at(-1);
        if (element?.skip) return;
        const start = parser.startIndex;
        const end = parser.endIndex + 1;
        const last = nodes.at(-1);
        // A text with character references comes in pieces.
        if (last !== undefined && last.end === start) {
          last.end = end;
          last.text += text;
        } else {
          nodes.push({ start, end, text, keepsLines: element?.keepsLines === true });
        }
      },
    },
    { decodeEntities: true },
  );
  parser.end(html);
  return nodes;
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\u00a0': '&nbsp;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>\u00a0]/g, (character) => escapes[character] as string);
}
