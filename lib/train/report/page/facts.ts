/** What is known of the runs besides their curves. */
import type { RunReport } from '../reportData.js';
import { make, tableRow, visible } from './dom.js';
import { duration, gibibytes, nothing, score, short, whole } from './format.js';

/** The rows of the table of runs. */
export function runRows(
  runs: readonly RunReport[],
  nameCell: (run: RunReport, index: number) => Node,
): HTMLElement[] {
  const hasScores = runs.some(({ best }) => best !== null && best.bleu !== null);
  const heads = ['Run', 'Steps', 'Epochs', 'Time', 'Target tokens/s', 'Training loss'];
  heads.push('Best validation loss', ...(hasScores ? ['BLEU', 'chrF'] : []), 'Parameters', 'End');
  return [
    make('thead', {}, tableRow('th', heads)),
    make(
      'tbody',
      {},
      ...runs.map((run, index) =>
        tableRow('td', [
          nameCell(run, index),
          whole(run.steps),
          whole(run.epochs),
          Number.isFinite(run.seconds) && run.seconds > 0 ? duration(run.seconds) : nothing,
          run.seconds > 0 ? whole(run.tokens / run.seconds) : nothing,
          short(run.epochRows.at(-1)?.trainLoss ?? run.loss.points.y.at(-1)),
          run.best === null
            ? nothing
            : `${short(run.best.loss)} (step ${whole(run.best.step)}, epoch ${run.best.epoch})`,
          ...(hasScores ? [score(run.best?.bleu), score(run.best?.chrf)] : []),
          run.parameters === null ? nothing : whole(run.parameters),
          make('span', { dir: 'auto' }, endOf(run)),
        ]),
      ),
    ),
  ];
}

function endOf({ end, resumes }: RunReport): string {
  const reasons: Readonly<Record<string, string>> = {
    finished: 'finished',
    patience: 'no more progress',
    aborted: 'stopped',
    error: `error: ${visible(end?.error ?? '')}`,
  };
  const reason = end === null ? 'running, or killed' : (reasons[end.reason] ?? end.reason);
  const times = resumes.length === 1 ? 'once' : `${resumes.length} times`;
  return resumes.length === 0 ? reason : `${reason}; resumed ${times}`;
}

/** Data, hardware, settings, epochs and messages of a run. */
export function factsOf(run: RunReport, isNamed: boolean): HTMLElement {
  const parts = [epochsOf(run), dataOf(run), hardwareOf(run), settingsOf(run), messagesOf(run)];
  const known = parts.filter((part) => part !== null);
  return make(
    'div',
    { className: 'facts' },
    ...(isNamed ? [make('h2', {}, visible(run.name))] : []),
    ...known,
  );
}

function details(summary: string, isOpen: boolean, ...content: readonly Node[]): HTMLElement {
  return make('details', { open: isOpen }, make('summary', {}, summary), ...content);
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): HTMLElement {
  return make(
    'div',
    { className: 'scroller', tabIndex: 0, role: 'group', 'aria-label': heads.join(', ') },
    make(
      'table',
      {},
      make('thead', {}, tableRow('th', heads)),
      make('tbody', {}, ...rows.map((row) => tableRow('td', row))),
    ),
  );
}

function epochsOf({ epochRows }: RunReport): HTMLElement | null {
  if (epochRows.length === 0) return null;
  const heads = [
    'Epoch',
    'Step',
    'Training loss',
    'Validation loss',
    'Target tokens/s',
    'Best so far',
  ];
  const rows = epochRows.map(({ epoch, step, trainLoss, validationLoss, speed, best }) => [
    whole(epoch),
    whole(step),
    short(trainLoss),
    short(validationLoss),
    speed === null ? nothing : whole(speed),
    best ? 'yes' : '',
  ]);
  return details('Epochs', false, table(heads, rows));
}

function dataOf({ data }: RunReport): HTMLElement | null {
  if (data.length === 0) return null;
  const heads = ['Data', 'Rows', 'Pairs kept', 'Empty', 'Too long', 'With a special token'];
  const rows = data.map((one) => [
    visible(one.name),
    ...[one.rows, one.kept, one.empty, one.tooLong, one.reserved, one.malformed, one.unknown].map(
      whole,
    ),
  ]);
  return details('Data', true, table([...heads, 'Malformed', 'With unknown characters'], rows));
}

function hardwareOf({ hardware }: RunReport): HTMLElement | null {
  if (hardware === null) return null;
  const { processor, cores, threads, memory, gpus, platform, node, libtorch, torchformer } =
    hardware;
  const facts: [string, string][] = [
    ['Processor', `${processor}, ${cores} logical ${cores === 1 ? 'core' : 'cores'}`],
    ['Threads', String(threads)],
    ['Memory', gibibytes(memory)],
    ...(gpus.length === 0 ? [] : [['GPU', gpus.join(', ')] as [string, string]]),
    ['System', platform],
    ['Versions', `torchformer ${torchformer}, libtorch ${libtorch}, Node.js ${node}`],
  ];
  const list = facts.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]);
  return details('Hardware and versions', true, make('dl', {}, ...list));
}

function settingsOf({ settings }: RunReport): HTMLElement | null {
  if (settings === null) return null;
  return details('Settings', false, make('pre', { tabIndex: 0 }, visible(settings)));
}

function messagesOf({ messages }: RunReport): HTMLElement | null {
  if (messages.length === 0) return null;
  const items = messages.map(({ step, text }) =>
    make('li', { dir: 'auto' }, make('b', {}, `step ${whole(step)}: `), visible(text)),
  );
  return details('Messages', false, make('ul', { className: 'messages' }, ...items));
}
