/** The methods of Tensor by topic: a file for each group, all put on its prototype. */
import { ComparisonMethods } from './comparison.js';
import { ElementwiseMethods } from './elementwise.js';
import { InPlaceMethods } from './inPlace.js';
import { IndexingMethods } from './indexing.js';
import { LinearAlgebraMethods } from './linearAlgebra.js';
import { PointwiseMethods } from './pointwise.js';
import { RandomMethods } from './random.js';
import { RearrangementMethods } from './rearrangement.js';
import { ReductionMethods } from './reduction.js';
import { ScatterMethods } from './scatter.js';
import { ShapeMethods } from './shape.js';
import { SortingMethods } from './sorting.js';
import { StatisticsMethods } from './statistics.js';

/** The methods that {@link Tensor} has beside those in its class. */
export interface TensorMethods
  extends
    ComparisonMethods,
    ElementwiseMethods,
    InPlaceMethods,
    IndexingMethods,
    LinearAlgebraMethods,
    PointwiseMethods,
    RandomMethods,
    RearrangementMethods,
    ReductionMethods,
    ScatterMethods,
    ShapeMethods,
    SortingMethods,
    StatisticsMethods {}

const groups = [
  ComparisonMethods,
  ElementwiseMethods,
  InPlaceMethods,
  IndexingMethods,
  LinearAlgebraMethods,
  PointwiseMethods,
  RandomMethods,
  RearrangementMethods,
  ReductionMethods,
  ScatterMethods,
  ShapeMethods,
  SortingMethods,
  StatisticsMethods,
];

/** Makes the methods of all groups the prototype's own, as if they were in the body of its class. */
export function addMethods(prototype: object): void {
  for (const group of groups) {
    const { constructor: _constructor, ...methods } = Object.getOwnPropertyDescriptors(
      group.prototype,
    );
    Object.defineProperties(prototype, methods);
  }
}
