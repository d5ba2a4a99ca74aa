/** Sample translations, at the validation that a slider chooses. */
import type { RunReport, Sample, SampleSet } from '../reportData.js';
import { attentionRows } from './attention.js';
import { make, visible } from './dom.js';
import { whole } from './format.js';

/** The samples of all runs that have some; null if none has. */
export function samplesOf(runs: readonly RunReport[]): HTMLElement | null {
  const having = runs.filter(({ samples }) => samples.length > 0);
  if (having.length === 0) return null;
  return make('div', {}, ...having.map((run) => samplesOfRun(run, runs.length > 1)));
}

function samplesOfRun({ name, samples: sets }: RunReport, isNamed: boolean): HTMLElement {
  const last = sets.length - 1;
  const slider = make('input', { type: 'range', min: '0', max: String(last), value: String(last) });
  const when = make('output', {});
  const list = make('div', {});
  const show = () => {
    const set = sets[Number(slider.value)] as SampleSet;
    const place = `step ${whole(set.step)}, epoch ${set.epoch}`;
    when.textContent = place;
    slider.setAttribute('aria-valuetext', place);
    list.replaceChildren(...set.samples.map(sampleCard));
  };
  slider.addEventListener('input', show);
  show();
  const label = make('label', { className: 'when' }, 'Validation ', slider, when);
  return make(
    'div',
    { className: 'run-samples' },
    ...(isNamed ? [make('h3', {}, visible(name))] : []),
    ...(last > 0 ? [label] : [make('p', { className: 'note' }, when)]),
    ...(sets.some(({ samples }) => samples.some(({ attention }) => attention !== null))
      ? [
          make(
            'p',
            { className: 'note' },
            'Point at a token of the translation, or move between them with the arrow keys: the ' +
              'tokens of the source that it attends to are marked, the more the stronger.',
          ),
        ]
      : []),
    list,
  );
}

function sampleCard({ source, translation, reference, attention }: Sample): HTMLElement {
  return make(
    'article',
    { className: 'sample' },
    make(
      'dl',
      {},
      ...pair('Source', source),
      ...pair('Translation', translation),
      ...(reference === null ? [] : pair('Reference', reference)),
    ),
    ...(attention === null ? [] : [attentionRows(attention)]),
  );
}

function pair(name: string, text: string): HTMLElement[] {
  const shown = text.trim() === '' ? make('em', {}, 'empty') : visible(text);
  return [make('dt', {}, name), make('dd', { dir: 'auto' }, shown)];
}
