/** Suite `responsiveness`: how long the event loop waits while a base model translates. */
import { join } from 'node:path';
import { runOurs } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt, print } from '../report.js';
import { median } from '../statistics.js';
import { duration, ratio, table } from '../table.js';
import { withWorkFolder } from '../workFolder.js';
import type { ResponsivenessResult, WorkName } from './work.js';

const titles: Readonly<Record<WorkName, string>> = {
  idle: 'nothing, for a second',
  load: 'Translator.load',
  first: 'first translation: prepares the weights',
  together: 'one call with 64 texts',
  concurrent: '64 calls with one text at once',
  sequential: '16 calls with one text, one after another',
};

/** Runs the suite. @returns the results for `--json` */
export async function benchResponsiveness(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 3;
  const results = await withWorkFolder(options.work, async (parent) => {
    const folder = join(parent, 'responsiveness');
    const prepared = await attempt('responsiveness: saving a model', () =>
      runOurs<boolean>('responsiveness/prepare.js', [folder]),
    );
    const found: ResponsivenessResult[] = [];
    for (let round = 1; prepared !== null && round <= rounds; round++) {
      const result = await attempt(`responsiveness, round ${round} of ${rounds}`, () =>
        runOurs<ResponsivenessResult>('responsiveness/work.js', [folder, String(options.threads)]),
      );
      if (result !== null) found.push(result);
    }
    return found;
  });
  if (results.length === 0) return results;
  const secondsOf = (name: WorkName) => median(results.map((result) => result[name].seconds));
  print('\n## responsiveness\n');
  print(
    'Base model (V 8000, N 6, d 512), greedy, 20 source and 39 target tokens; time is the median of ' +
      `${results.length} rounds, delays are the largest of all rounds`,
  );
  print();
  const rows = Object.entries(titles).map(([name, title]) => {
    const work = results.map((result) => result[name as WorkName]);
    const delay = (of: 'p50' | 'p99' | 'max') => duration(Math.max(...work.map((one) => one[of])));
    return [title, duration(secondsOf(name as WorkName)), delay('p50'), delay('p99'), delay('max')];
  });
  print(table(['work', 'time', 'delay p50', 'p99', 'max'], rows));
  print();
  const together = secondsOf('together');
  print(
    `64 calls at once take ${ratio(secondsOf('concurrent') / together)} the time of one call with 64 ` +
      `texts; one after another, they would take ${ratio((4 * secondsOf('sequential')) / together)}.`,
  );
  return results;
}
