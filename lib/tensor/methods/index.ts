/** The methods of Tensor by topic: one file per group, all added to its prototype. */
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

/** The methods of {@link Tensor} that are not in its class. */
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

/** Adds the methods of all groups to the prototype, as if they were in the body of the class. */
export function addMethods(prototype: object): void {
  for (const group of groups) {
    const { constructor: _constructor, ...methods } = Object.getOwnPropertyDescriptors(
      group.prototype,
    );
    Object.defineProperties(prototype, methods);
  }
}
