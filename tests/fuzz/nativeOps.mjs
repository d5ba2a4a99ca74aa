/** Calls of every `torchformer::*` op: good arguments, then with something spoilt. */
import * as tf from '../../dist/index.js';
import { native } from '../../dist/tensor/dispatch.js';
import { mutate } from './mutate.mjs';
import { anything, ids, tensor } from './values.mjs';

const floating = ['float32', 'float32', 'float64', 'bfloat16', 'float16'];
const odd = (r) => (r.chance(8) ? 0 : r.pick([1, 2, 3, 4, 7, 8, 16, 17, 33]));

function optional(r, make) {
  return r.chance(60) ? make() : null;
}

/** Offsets of `count` sequences with `tokens` tokens together. */
function offsets(r, tokens, count, dtype = 'int64') {
  const cuts = Array.from({ length: count - 1 }, () => r.below(tokens + 1)).sort((a, b) => a - b);
  return tf.tensor([0, ...cuts, tokens], { dtype });
}

function attention(r) {
  const dtype = r.pick(floating);
  const [batch, heads, queries, keys, width] = [odd(r), r.pick([1, 2]), odd(r), odd(r), odd(r)];
  const four = r.chance(70);
  const sizes = (length) => (four ? [batch, heads, length, width] : [batch, length, width]);
  const masks = [
    [queries, keys],
    [1, keys],
    ...(four
      ? [
          [batch, 1, queries, keys],
          [batch, heads, queries, keys],
        ]
      : [[batch, 1, keys]]),
  ];
  return [
    tensor(r, sizes(queries), dtype),
    tensor(r, sizes(keys), dtype),
    tensor(r, sizes(keys), dtype),
    optional(r, () => tensor(r, r.pick(masks), r.chance(80) ? 'bool' : 'int64')),
    r.pick([0, 0, 0.5, 1, -1, NaN]),
    {
      empty_rows: r.pick(['uniform', 'uniform', 'zero', 'x']),
      need_weights: r.chance(40),
    },
  ];
}

function packedAttention(r) {
  const dtype = r.pick(floating);
  const heads = r.pick([1, 2, 3]);
  const width = heads * r.pick([1, 2, 4, 8, 17]);
  const sequences = 1 + r.below(3);
  const self = r.chance(50);
  const queries = odd(r);
  const keys = self ? queries : odd(r);
  const queryOffsets = offsets(r, queries, sequences);
  return [
    tensor(r, [queries, width], dtype),
    tensor(r, [keys, width], dtype),
    tensor(r, [keys, width], dtype),
    queryOffsets,
    self ? queryOffsets : offsets(r, keys, sequences),
    heads,
    self && r.chance(60),
    r.pick([0, 0, 0.3, 1]),
  ];
}

function feedForward(r) {
  const dtype = r.pick(floating);
  const [outer, inner] = [odd(r), odd(r)];
  const gated = r.chance(30);
  return [
    tensor(r, [...r.list(0, 2, () => odd(r)), outer], dtype),
    tensor(r, [inner, outer], dtype),
    optional(r, () => tensor(r, [inner], dtype)),
    tensor(r, [outer, inner], dtype),
    optional(r, () => tensor(r, [outer], dtype)),
    r.pick([0, 0.2, 1]),
    {
      activation: gated ? r.pick(['swiglu', 'geglu', 'relu']) : r.pick(['relu', 'gelu', 'silu']),
      ...(gated ? { w_3: tensor(r, [inner, outer], dtype), b_3: tensor(r, [inner], dtype) } : {}),
      products: r.pick(['own', 'own', 'bfloat16', 'x']),
    },
  ];
}

function embed(r) {
  const dtype = r.pick(floating);
  const [rows, width, positions] = [1 + odd(r), odd(r), 1 + odd(r)];
  const shape = r.list(0, 2, () => odd(r));
  const hasTable = r.chance(60);
  return [
    tensor(r, [rows, width], dtype),
    ids(r, shape, rows),
    r.pick([1, 2.5, 0, Infinity]),
    hasTable ? tensor(r, [positions, width], dtype) : null,
    hasTable ? ids(r, shape, positions) : null,
    r.pick([0, 0.2, 1]),
    { sparse_grad: r.chance(30) },
  ];
}

function linear(r) {
  const dtype = r.pick(floating);
  const [inputs, outputs] = [odd(r), odd(r)];
  return [
    tensor(r, [...r.list(0, 2, () => odd(r)), inputs], dtype),
    tensor(r, [outputs, inputs], dtype),
    optional(r, () => tensor(r, [outputs], dtype)),
    { products: r.pick(['own', 'own', 'bfloat16', 'float32']) },
  ];
}

function linearCrossEntropy(r) {
  const dtype = r.pick(floating);
  const [rows, width, vocabulary] = [odd(r), odd(r), r.pick([1, 2, 5, 17, 33, 300])];
  return [
    tensor(r, [rows, width], dtype),
    tensor(r, [vocabulary, width], dtype),
    optional(r, () => tensor(r, [vocabulary], dtype)),
    ids(r, [rows], vocabulary),
    r.pick([-100, 0, 1, -1, 2 ** 40]),
    r.pick([0, 0.1, 1, 2, NaN]),
    r.pick([1, 0.5, 0, Infinity]),
    {
      products: r.pick(['own', 'bfloat16']),
      smoothing_form: r.pick(['cross_entropy', 'kl_divergence', 'kl_divergence', 'sum']),
    },
  ];
}

function norm(r, withShift) {
  const dtype = r.pick(floating);
  const width = odd(r);
  const parts = [
    tensor(r, [...r.list(0, 3, () => odd(r)), width], dtype),
    tensor(r, [width], dtype),
    ...(withShift ? [tensor(r, [width], dtype)] : []),
    r.pick([1e-6, 1e-5, 0, -1, NaN]),
  ];
  return withShift ? [...parts, { sample_std: r.chance(40), eps_outside: r.chance(40) }] : parts;
}

function addNorm(r) {
  const dtype = r.pick(floating);
  const width = odd(r);
  const sizes = [...r.list(0, 3, () => odd(r)), width];
  return [
    tensor(r, sizes, dtype),
    tensor(r, sizes, dtype),
    tensor(r, [width], dtype),
    optional(r, () => tensor(r, [width], dtype)),
    r.pick([0, 0.2, 1, NaN]),
    r.pick([1e-6, 1e-5, 0, -1]),
    { sample_std: r.chance(40), eps_outside: r.chance(40), centred: r.chance(80) },
  ];
}

function dropout(r) {
  const dtype = r.pick(floating);
  const sizes = r.list(0, 3, () => odd(r));
  return [
    tensor(r, sizes, dtype),
    r.pick([0, 0.1, 0.5, 1, -0.1, NaN]),
    r.chance(50) ? { residual: tensor(r, sizes, dtype) } : {},
  ];
}

function adamRows(r) {
  const dtype = r.pick(['float32', 'float32', 'float64', 'bfloat16']);
  const [rows, width] = [1 + odd(r), odd(r)];
  const state = () => tf.zeros([rows, width], { dtype });
  const found = r.list(0, 4, () => r.below(rows));
  // Coalescing trusts its indices: only the op itself may see one outside.
  const outside = r.chance(10) ? r.pick([-1, rows, 2 ** 40]) : r.below(rows);
  const isSound = outside >= 0 && outside < rows;
  const indices = tf.tensor([[...found, outside]], { dtype: 'int64' });
  const gradient = tf.callTensor(
    'aten::_sparse_coo_tensor_unsafe',
    indices,
    tensor(r, [found.length + 1, width], dtype).detach(),
    [rows, width],
  );
  return [
    tensor(r, [rows, width], dtype).detach().clone(),
    isSound && r.chance(60) ? tf.callTensor('aten::coalesce', gradient) : gradient,
    state(),
    state(),
    tf.zeros([rows], { dtype: r.pick(['bool', 'bool', 'uint8', 'int64']) }),
    tf.tensor(r.pick([1, 2, 1000, 0, -1, [1, 2]]), {
      dtype: r.pick(['float32', 'float32', 'int64']),
    }),
    { lr: r.pick([0.1, NaN]), beta1: r.pick([0.9, 1]), beta2: 0.98, eps: r.pick([1e-9, 0]) },
  ];
}

function adafactor(r) {
  const dtype = r.pick(['float32', 'float32', 'float64', 'bfloat16']);
  const shape = r.list(0, 3, () => odd(r));
  const isMatrix = shape.length > 1;
  const state = (...of) => tf.zeros(of, { dtype: r.pick([dtype, dtype, dtype, 'float64']) });
  return [
    tensor(r, shape, dtype).detach().clone(),
    tensor(r, r.chance(90) ? shape : [3], dtype).detach(),
    state(...(isMatrix ? shape.with(-1, 1) : shape)),
    isMatrix && r.chance(90) ? state(...shape.with(-2, 1)) : null,
    r.pick([1, 2, 1000, 0, NaN]),
    {
      lr: r.pick([0.1, NaN]),
      beta2_decay: r.pick([-0.8, 0, 1]),
      eps1: r.pick([null, 0, 1e-30, -1]),
      clip_threshold: r.pick([1, 0]),
      weight_decay: r.pick([0, 0.1]),
    },
  ];
}

const good = {
  adafactor_: adafactor,
  adam_rows_: adamRows,
  'adam_rows_.tensor_lr': (r) => {
    const [settings, ...tensors] = adamRows(r).reverse();
    return [...tensors.reverse(), { ...settings, lr: tf.tensor(r.pick([0.1, NaN])) }];
  },
  add_norm: addNorm,
  attention,
  dropout,
  embed,
  feed_forward: feedForward,
  layer_norm: (r) => norm(r, true),
  linear,
  linear_cross_entropy: linearCrossEntropy,
  packed_attention: packedAttention,
  rms_norm: (r) => norm(r, false),
};

/** The ops that there are, so that a new one without good arguments here is noticed. */
export function nativeOps() {
  return native()
    .listOps()
    .filter((name) => name.startsWith('torchformer::'))
    .sort();
}

function goodArguments(r, op) {
  const name = op.slice('torchformer::'.length).replace(/_reference(_?)$/, '$1');
  if (!(name in good)) throw new Error(`tests/fuzz/nativeOps.mjs has no arguments for ${op}`);
  return good[name](r);
}

/** Runs a backward pass through what came out, with gradients that nobody expects. */
function backward(r, results) {
  const outputs = (Array.isArray(results) ? results : [results]).filter(
    (one) => one instanceof tf.Tensor && one.requiresGrad,
  );
  if (outputs.length === 0) return;
  const output = r.pick(outputs);
  const gradient = r.chance(80) ? tensor(r, output.shape, output.dtype).detach() : anything(r);
  output.backward({ gradient });
}

/** One call of one op, on the event loop or off it. */
export function nativeOpCall(r) {
  const op = r.pick(nativeOps());
  const args = r.chance(4) ? r.list(0, 12, () => anything(r)) : mutate(r, goodArguments(r, op));
  if (r.chance(10))
    return { name: `${op}, off the loop`, args, run: () => tf.callAsync(op, ...args) };
  return {
    name: op,
    args,
    run: () => {
      const results = tf.call(op, ...args);
      if (r.chance(70)) backward(r, results);
      return results;
    },
  };
}
