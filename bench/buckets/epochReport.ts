/** The table of whole epochs. */
import { print } from '../report.js';
import { ratio, table } from '../table.js';
import type { Turn } from '../turns.js';
import type { BucketEpoch, BucketResult } from './bucketJob.js';
import type { PreparedBuckets } from './bucketPrepare.js';

/** The epochs of one turn of a participant. */
export interface TurnEpochs {
  readonly name: string;
  readonly kind: 'ours' | 'peer';
  readonly epochs: readonly BucketEpoch[];
}

export function gatherEpochs(turns: readonly Turn<BucketResult>[]): TurnEpochs[] {
  return turns.map(({ name, kind, result }) => ({ name, kind, epochs: result.epochs }));
}

export function printEpochs(turns: readonly TurnEpochs[], prepared: PreparedBuckets): void {
  print(
    `\nWhole epochs of ${prepared.pairCount} pairs with ${prepared.targetTokens} target tokens, ` +
      'dropout 0.1; the validation loss is the mean over all target tokens, without dropout:\n',
  );
  // Against the first peer: the table is read from there.
  const peer = turns.find(({ kind }) => kind === 'peer');
  const rows = turns.flatMap(({ name, kind, epochs }) =>
    epochs.map((each, index) => {
      const other = peer?.epochs[index];
      const lead =
        kind === 'peer' || other === undefined ? '' : ratio(other.seconds / each.seconds);
      return [
        name,
        String(index + 1),
        each.seconds.toFixed(0),
        (prepared.targetTokens / each.seconds).toFixed(0),
        lead,
        each.trainingLoss.toFixed(4),
        each.validationLoss?.toFixed(4) ?? '',
      ];
    }),
  );
  const against = peer === undefined ? 'ours is' : `against ${peer.name}`;
  const head = ['participant', 'epoch', 'seconds', 'target tokens/s', against];
  print(table([...head, 'training loss', 'validation loss'], rows));
}
