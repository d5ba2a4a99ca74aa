/** A translation whose tokens can be pointed at: the sources that each attends to are then marked. */
import type { SampleAttention } from '../reportData.js';
import { make, visible } from './dom.js';

/** Percentages below this are not read out. */
const leastTold = 10;

/** The two rows of tokens. */
export function attentionRows({
  sourceTokens,
  targetTokens,
  percent,
}: SampleAttention): HTMLElement {
  const sources = sourceTokens.map((token) => make('li', { className: 'source' }, visible(token)));
  const buttons = targetTokens.map((token, index) => {
    const shares = percent[index] ?? [];
    const button = make(
      'button',
      {
        type: 'button',
        tabIndex: index === 0 ? 0 : -1,
        'aria-label': spoken(token, sourceTokens, shares),
      },
      visible(token),
    );
    const show = () => {
      for (const other of buttons) other.classList.toggle('is-shown', other === button);
      sources.forEach((source, at) => mark(source, shares[at] ?? 0));
    };
    for (const event of ['mouseenter', 'focus', 'click']) button.addEventListener(event, show);
    return button;
  });
  moveWithArrows(buttons);
  return make(
    'div',
    { className: 'attention' },
    make(
      'ul',
      { className: 'words', dir: 'auto', 'aria-label': 'Tokens of the source' },
      ...sources,
    ),
    make(
      'div',
      { className: 'words', dir: 'auto', role: 'group', 'aria-label': 'Tokens of the translation' },
      ...buttons,
    ),
  );
}

function mark(source: HTMLElement, share: number): void {
  source.style.setProperty('--weight', String(share / 100));
  source.classList.toggle('is-marked', share >= leastTold);
  source.title = `${share} %`;
}

function spoken(token: string, sources: readonly string[], shares: readonly number[]): string {
  const told = sources
    .map((source, index) => ({ source, share: shares[index] ?? 0 }))
    .filter(({ share }) => share >= leastTold)
    .sort((a, b) => b.share - a.share)
    .slice(0, 3)
    .map(({ source, share }) => `${visible(source)} ${share} %`);
  return told.length === 0 ? visible(token) : `${visible(token)}, from ${told.join(', ')}`;
}

/** One button of the row takes part in the tab order; the arrow keys go to the others. */
function moveWithArrows(buttons: readonly HTMLButtonElement[]): void {
  buttons.forEach((button, index) => {
    button.addEventListener('keydown', (event) => {
      const isRightToLeft = getComputedStyle(button).direction === 'rtl';
      const targets: Readonly<Record<string, number>> = {
        ArrowRight: index + (isRightToLeft ? -1 : 1),
        ArrowLeft: index + (isRightToLeft ? 1 : -1),
        Home: 0,
        End: buttons.length - 1,
      };
      const next = buttons[targets[event.key] ?? -1];
      if (next === undefined) return;
      event.preventDefault();
      for (const other of buttons) other.tabIndex = other === next ? 0 : -1;
      next.focus();
    });
  });
}
