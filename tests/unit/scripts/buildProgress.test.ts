/** What `npm run demo` and `npm test` show of a native build. */
import { describe, expect, it } from 'vitest';
import { BuildProgress } from '../../../scripts/buildProgress.cjs';

const steps = [
  'Building C object CMakeFiles/torchformer_bootstrap.dir/bootstrap.c.o',
  'Building CXX object CMakeFiles/core.dir/cmake_pch.hxx.gch',
  'Building CXX object CMakeFiles/core.dir/Unity/unity_0_cxx.cxx.o',
  'Building CXX object CMakeFiles/core.dir/native/core/norm_loops.cc.o',
  'Linking CXX shared module torchformer.node',
];
const planned = steps.map((step, i) => `[${i + 1}/5] ${step}`);

/** A build of these steps that have ended at the given seconds. */
function progressAt(seconds: readonly number[], plan: readonly string[] = planned) {
  const progress = new BuildProgress(plan);
  seconds.forEach((second, i) => progress.take(planned[i] ?? '', second));
  return progress;
}

describe('the progress of a native build', () => {
  it('counts the steps of ninja', () => {
    expect(progressAt([1, 20]).describe(21)).toMatch(/^2 of 5 steps, 21 s, /);
  });

  it('estimates the time left from what the steps cost, not from their number', () => {
    // 22.2 of 43.4: 20 s were a little more than half.
    expect(progressAt([1, 20]).describe(20)).toBe('2 of 5 steps, 20 s, about 20 s left');
    expect(progressAt([1, 20, 34]).describe(34)).toBe('3 of 5 steps, 34 s, a few seconds left');
  });

  it('counts down while a step runs', () => {
    expect(progressAt([1, 20]).describe(30)).toBe('2 of 5 steps, 30 s, about 10 s left');
  });

  it('concludes nothing from the first short steps', () => {
    expect(progressAt([1]).describe(12)).toBe('1 of 5 steps, 12 s');
  });

  it('says minutes where there are many seconds', () => {
    expect(progressAt([1, 200]).describe(200)).toBe('2 of 5 steps, 200 s, about 4 min left');
  });

  it('counts steps if the build has others than its dry run', () => {
    const progress = progressAt([1, 20], planned.slice(0, 1));
    expect(progress.describe(20)).toBe('2 of 5 steps, 20 s, about 30 s left');
  });

  it('follows the percentages of make', () => {
    const progress = new BuildProgress([]);
    expect(progress.take('[ 25%] Building CXX object CMakeFiles/core.dir/a.cc.o', 10)).toBe(false);
    expect(progress.describe(10)).toBe('25 %, 10 s, about 30 s left');
  });

  it('shows the messages of compilers and nothing else', () => {
    const progress = new BuildProgress(planned);
    const shown = [
      'ninja: Entering directory `build-native`',
      ...planned,
      'ninja: no work to do.',
      'Consolidate compiler generated dependencies of target core',
      'Scanning dependencies of target core',
      "make[2]: Entering directory '/build-native'",
      '[100%] Built target core',
      '',
      'FAILED: CMakeFiles/core.dir/native/core/norm.cc.o',
      'native/core/norm.cc:3:1: error: expected unqualified-id',
      'ninja: build stopped: subcommand failed.',
    ].filter((line) => progress.take(line, 1));
    expect(shown).toEqual([
      'FAILED: CMakeFiles/core.dir/native/core/norm.cc.o',
      'native/core/norm.cc:3:1: error: expected unqualified-id',
      'ninja: build stopped: subcommand failed.',
    ]);
  });

  it('has nothing to show if everything was up to date', () => {
    const progress = new BuildProgress([]);
    progress.take('ninja: no work to do.', 0.1);
    expect(progress.hasBegun).toBe(false);
  });
});
