/** What TypeScript knows about modules. Compiled by types.test.ts, never run. */
import { expectTypeOf } from 'vitest';
import { Linear, makeModel, Module, ModuleDict, ModuleList, Sequential } from 'torchformer';
import type {
  Buffer,
  Embedding,
  LoadStateResult,
  Parameter,
  Tensor,
  TensorModule,
  Transformer,
} from 'torchformer';

class Pair extends Module {
  hidden = new Linear(2, 3);
  override forward(input: Tensor, scale: number): [Tensor, Tensor] {
    return [this.hidden.forward(input), input.mul(scale)];
  }
}

declare const pair: Pair;
declare const input: Tensor;
declare const embedding: Embedding;

// A subclass has the forward it declares.
expectTypeOf(pair.forward(input, 2)).toEqualTypeOf<[Tensor, Tensor]>();
// @ts-expect-error the second argument is missing
pair.forward(input);
// @ts-expect-error a string is no tensor
pair.forward('x', 2);
// @ts-expect-error forward of a module whose class is not known takes nothing
(pair as Module).forward(input);
expectTypeOf(pair).toExtend<Module>();
expectTypeOf(pair).not.toExtend<TensorModule>();
expectTypeOf(embedding).toExtend<TensorModule>();

// Methods that return the module keep its class.
expectTypeOf(pair.train().eval().requiresGrad_(false)).toEqualTypeOf<Pair>();
expectTypeOf(pair.to('cpu').to('float64').to('cuda:1', 'bfloat16').half()).toEqualTypeOf<Pair>();
expectTypeOf(
  pair
    .to(input)
    .apply(() => undefined)
    .clone(),
).toEqualTypeOf<Pair>();
// @ts-expect-error parameters are not of integers
pair.to('int64');
// @ts-expect-error no such device
pair.to('tpu');

// Listings.
expectTypeOf(pair.parameters()).toEqualTypeOf<Parameter[]>();
expectTypeOf(pair.namedParameters({ removeDuplicate: false })).toEqualTypeOf<
  [string, Parameter][]
>();
expectTypeOf(pair.buffers()).toEqualTypeOf<Buffer[]>();
expectTypeOf(pair.stateDict()).toEqualTypeOf<Map<string, Tensor>>();
expectTypeOf(pair.loadStateDict(pair.stateDict())).toEqualTypeOf<LoadStateResult>();
expectTypeOf(pair.getSubmodule('hidden')).toEqualTypeOf<Module>();
expectTypeOf(pair.getSubmodule('hidden', Linear)).toEqualTypeOf<Linear>();
expectTypeOf(pair.getParameter('hidden.weight')).toEqualTypeOf<Parameter>();
expectTypeOf(pair.parameterCount({ trainable: true })).toEqualTypeOf<number>();

// Containers know their members.
const list = new ModuleList([new Linear(1, 1)]);
expectTypeOf(list).toEqualTypeOf<ModuleList<Linear>>();
expectTypeOf(list.at(0)).toEqualTypeOf<Linear>();
expectTypeOf(list[0]).toEqualTypeOf<Linear | undefined>();
expectTypeOf(list.slice(1).pop()).toEqualTypeOf<Linear>();
for (const member of list) expectTypeOf(member).toEqualTypeOf<Linear>();
// @ts-expect-error a Pair is no Linear
list.append(pair);
const dict = new ModuleDict({ a: new Linear(1, 1), b: pair });
expectTypeOf(dict.get('a')).toEqualTypeOf<Linear>();
expectTypeOf(dict.get('b')).toEqualTypeOf<Pair>();
// @ts-expect-error there is no c
dict.get('c');
// @ts-expect-error b is a Pair
dict.set('b', new Linear(1, 1));
expectTypeOf(new Sequential(new Linear(1, 1)).forward(input)).toEqualTypeOf<Tensor>();
// @ts-expect-error a Pair takes more than a tensor
new Sequential(pair);

// Hooks know the arguments and the result of the forward they are on.
pair.registerForwardPreHook((module, inputs) => {
  expectTypeOf(module).toEqualTypeOf<Pair>();
  expectTypeOf(inputs).toEqualTypeOf<[input: Tensor, scale: number]>();
  return [inputs[0], 3];
});
const handle = pair.registerForwardHook((_module, [, scale], output) => {
  expectTypeOf(scale).toEqualTypeOf<number>();
  expectTypeOf(output).toEqualTypeOf<[Tensor, Tensor]>();
});
expectTypeOf(handle.remove()).toEqualTypeOf<void>();
// @ts-expect-error the result must be the forward's
pair.registerForwardHook(() => 3);
// @ts-expect-error a scale is missing
pair.registerForwardPreHook((_module, [first]) => [first]);
pair.registerBackwardHook((_module, gradInputs, gradOutputs) => {
  expectTypeOf(gradInputs).toEqualTypeOf<readonly (Tensor | null)[]>();
  expectTypeOf(gradOutputs).toEqualTypeOf<readonly (Tensor | null)[]>();
});

expectTypeOf(makeModel(9)).toEqualTypeOf<Transformer>();
