/** Suite `bridge`: the cost of one small op from TypeScript and from Python. */
import { runOurs, runPeer } from './child.js';
import type { BenchOptions } from './options.js';
import { attempt, print } from './report.js';
import { median } from './statistics.js';
import { duration, ratio, table } from './table.js';

/** The JSON line of a participant: seconds per call, by the way of calling. */
export interface BridgeResult {
  readonly seconds: Readonly<Record<string, readonly number[]>>;
}

/** Calls whose mean is one measurement, and measurements per turn. */
export const bridgeCalls = 20_000;
export const bridgeRepeats = 15;

/** Runs the suite. @returns the results for `--json` */
export async function benchBridge(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 3;
  const settings = [bridgeCalls, bridgeRepeats, options.threads].map(String);
  const seconds = new Map<string, number[]>();
  const note = (result: BridgeResult | null): void => {
    for (const [way, times] of Object.entries(result?.seconds ?? {})) {
      seconds.set(way, [...(seconds.get(way) ?? []), ...times]);
    }
  };
  for (let round = 1; round <= rounds; round++) {
    const title = (name: string) => `bridge, round ${round} of ${rounds}: ${name}`;
    note(await attempt(title('ours'), () => runOurs<BridgeResult>('bridgeOurs.js', settings)));
    if (options.peers.length === 0) continue;
    note(
      await attempt(title('PyTorch'), () =>
        runPeer<BridgeResult>(options.python, 'bridge.py', settings),
      ),
    );
  }
  const medians = [...seconds].map(([way, times]) => ({ way, seconds: median(times) }));
  const python = medians.find(({ way }) => way.startsWith('Python'));
  print('\n## bridge\n');
  print(
    `One sum of two [4, 4] tensors, including freeing the result; medians of means over ` +
      `${bridgeCalls} calls, ${rounds} rounds in turn`,
  );
  print();
  const rows = medians.map(({ way, seconds: time }) => [
    way,
    duration(time),
    python === undefined ? '-' : ratio(time / python.seconds),
  ]);
  print(table(['call', 'time', "of Python's"], rows));
  return medians;
}
