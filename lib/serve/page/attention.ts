/** Two rows of words: the translation's can be pointed at, the text's are then marked. */
import type { Attention, Word } from './client.js';

/** The share of a target word's attention that a source word has: 0 to 1. */
function wordWeight(weights: Attention['weights'], target: Word, source: Word): number {
  const all = target.tokens.flatMap((row) =>
    source.tokens.map((column) => weights[row]?.[column] ?? 0),
  );
  return all.reduce((sum, weight) => sum + weight, 0) / Math.max(1, target.tokens.length);
}

/** The rows for one line of the text. */
export function attentionLine(
  { sourceWords: sources, targetWords: targets, weights }: Attention,
  languages: { readonly source: string; readonly target: string },
): HTMLElement {
  const sourceItems = sources.map(({ text }) => {
    const item = document.createElement('li');
    item.className = 'source';
    item.textContent = text;
    return item;
  });
  const buttons = targets.map((target, index) => {
    const shares = sources.map((source) => wordWeight(weights, target, source));
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = target.text;
    button.tabIndex = index === 0 ? 0 : -1;
    button.setAttribute('aria-label', describeWord(target.text, sources, shares));
    const show = () => {
      for (const other of buttons) other.classList.toggle('is-shown', other === button);
      sourceItems.forEach((item, at) => mark(item, shares[at] ?? 0));
    };
    button.addEventListener('mouseenter', show);
    button.addEventListener('focus', show);
    button.addEventListener('click', show);
    return button;
  });
  const line = document.createElement('div');
  line.className = 'line';
  line.append(
    row('ul', 'Text', languages.source, sourceItems),
    row('div', 'Translation', languages.target, buttons),
  );
  moveWithArrows(buttons);
  return line;
}

function row(tag: string, name: string, lang: string, words: readonly HTMLElement[]): HTMLElement {
  const element = document.createElement(tag);
  element.className = 'words';
  element.setAttribute('aria-label', name);
  if (tag === 'div') element.setAttribute('role', 'group');
  element.dir = 'auto';
  if (lang !== 'auto') element.lang = lang;
  element.append(...words);
  return element;
}

function mark(item: HTMLElement, share: number): void {
  item.style.setProperty('--weight', share.toFixed(3));
  item.classList.toggle('is-marked', share >= leastTold);
}

/** Smaller shares are not read out. */
const leastTold = 0.1;

function describeWord(text: string, sources: readonly Word[], shares: readonly number[]): string {
  const told = sources
    .map((source, index) => ({ text: source.text, share: shares[index] ?? 0 }))
    .filter(({ share }) => share >= leastTold)
    .sort((a, b) => b.share - a.share)
    .slice(0, 3)
    .map((source) => `${source.text} ${Math.round(100 * source.share)} %`);
  return told.length === 0 ? text : `${text}, from ${told.join(', ')}`;
}

/** One button of the row takes part in the tab order; the arrow keys go to the others. */
function moveWithArrows(buttons: readonly HTMLButtonElement[]): void {
  buttons.forEach((button, index) => {
    button.addEventListener('keydown', (event) => {
      const isRightToLeft = getComputedStyle(button).direction === 'rtl';
      const steps: Record<string, number> = {
        ArrowRight: index + (isRightToLeft ? -1 : 1),
        ArrowLeft: index + (isRightToLeft ? 1 : -1),
        Home: 0,
        End: buttons.length - 1,
      };
      const next = buttons[steps[event.key] ?? -1];
      if (next === undefined) return;
      event.preventDefault();
      for (const other of buttons) other.tabIndex = other === next ? 0 : -1;
      next.focus();
    });
  });
}
