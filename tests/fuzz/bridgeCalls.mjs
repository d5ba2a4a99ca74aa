/** What strains the bridge: code of the caller's that runs in the middle of native calls. */
import * as tf from '../../dist/index.js';
import { anything, FromCallback, tensor } from './values.mjs';

function leaf(r) {
  return tensor(r, [2, 3], 'float32').detach().clone().requiresGrad_(true);
}

/** What a hook or a backward function does to tensors that the running pass may need. */
function meddle(r, tensors) {
  const one = r.pick(tensors);
  const acts = [
    () => one.dispose(),
    () => tensors.forEach((each) => each.dispose()),
    () => one.add(1),
    () => one.mul(2).sum().backward(),
    () => one.requiresGrad_(false),
    () => (one.grad = null),
    () => tf.call('torchformer::dropout', one, 0.5),
    () => Array.from({ length: 1200 }, () => tf.zeros([1])).length,
    () => one.registerHook(() => undefined).remove(),
    () => tf.tidy(() => one.mul(one)),
    () => {
      throw new FromCallback('thrown by a hook');
    },
    () => anything(r),
    () => tf.callAsync('aten::add.Tensor', one, one).catch(() => undefined),
  ];
  return r.pick(acts)();
}

function hooks(r) {
  const x = leaf(r);
  const y = x.mul(2);
  const z = y.mul(y);
  const all = [x, y, z];
  for (const each of all) {
    if (!r.chance(60)) continue;
    const hook = each.registerHook((gradient) => {
      meddle(r, [...all, gradient]);
      return r.pick([undefined, null, gradient, gradient, 1, anything(r)]);
    });
    if (r.chance(15)) hook.remove();
  }
  const options = {
    gradient: tf.ones([2, 3]),
    retainGraph: r.chance(40),
    createGraph: r.chance(15),
  };
  return {
    name: 'backward with hooks that meddle',
    args: all,
    run: () => {
      if (r.chance(30)) return z.backwardAsync(options);
      z.backward(options);
      if (r.chance(40)) z.backward(options);
      return x.isDisposed ? null : x.grad;
    },
  };
}

function ownFunction(r) {
  const inputs = [leaf(r), leaf(r)];
  const made = [];
  const call = tf.defineFunction({
    name: 'fuzzed',
    forward(context, ...args) {
      if (r.chance(60)) context.save(...args);
      if (r.chance(20)) meddle(r, inputs);
      const result = r.pick([() => args[0].mul(args[1]), () => args[0], () => anything(r)])();
      if (r.chance(25)) return [result, args[1].add(1)];
      return result;
    },
    backward(context, ...gradients) {
      if (r.chance(50)) meddle(r, [...inputs, ...made, ...gradients.filter((one) => one !== null)]);
      const saved = r.chance(50) ? context.saved : inputs;
      return r.pick([
        () => [gradients[0].mul(saved[1]), gradients[0].mul(saved[0])],
        () => [gradients[0], null],
        () => gradients[0],
        () => anything(r),
        () => [anything(r), anything(r)],
      ])();
    },
  });
  return {
    name: 'defineFunction, forward and backward',
    args: inputs,
    run: () => {
      const result = call(...inputs);
      const output = Array.isArray(result) ? result[0] : result;
      made.push(output);
      if (output instanceof tf.Tensor && output.requiresGrad) {
        output.backward({ gradient: tf.ones([2, 3]) });
      }
      return result;
    },
  };
}

/** Ops of all lengths of argument lists: some fit the frame that native code shares, some not. */
function argumentCounts(r) {
  const x = tensor(r, [2, 3], 'float32').detach();
  const op = r.pick([
    'aten::add.Tensor',
    'aten::sum.dim_IntList',
    'aten::convolution',
    'aten::_fused_sdp_choice',
    'aten::clamp',
    'aten::add_.Tensor',
    'aten::relu_',
    'aten::var.correction',
    'torchformer::layer_norm',
    'torchformer::feed_forward',
  ]);
  const args = r.list(0, 20, (index) =>
    index === 0 ? x : r.pick([x, 1, true, null, undefined, 0.5]),
  );
  if (r.chance(30)) args.push(anything(r));
  return { name: op, args, run: () => tf.call(op, ...args) };
}

/** Getters and proxies run code of the caller's while native code reads its arguments. */
function argumentsThatAct(r) {
  const x = tensor(r, [2, 3], 'float32').detach();
  const y = tensor(r, [2, 3], 'float32').detach();
  const list = [x, y];
  Object.defineProperty(list, 1, {
    get: () => {
      meddle(r, [x, y]);
      return r.pick([x, y, null]);
    },
  });
  const keywords = {
    get alpha() {
      meddle(r, [x, y]);
      return r.pick([1, 2, x]);
    },
  };
  return r.pick([
    { name: 'cat with a getter', args: [x, y], run: () => tf.call('aten::cat', list, 0) },
    { name: 'stack with a getter', args: [x, y], run: () => tf.stack(list) },
    {
      name: 'add with a getter',
      args: [x, y],
      run: () => tf.call('aten::add.Tensor', x, y, keywords),
    },
    {
      name: 'grad with a getter',
      args: [x, y],
      run: () => tf.grad(x.requiresGrad_(true).mul(y), list),
    },
  ]);
}

/** Scopes that end out of order, with tensors that were disposed of, kept, adopted. */
function scopes(r) {
  const outer = tf.zeros([2, 2]);
  return {
    name: 'scopes',
    args: [outer],
    run: () => {
      const scope = new tf.Scope();
      const inner = scope.run(() =>
        tf.tidy(() => {
          const made = Array.from({ length: 5 }, () => outer.add(1));
          if (r.chance(50)) tf.keep(made[0]);
          if (r.chance(30)) made[1].dispose();
          if (r.chance(30)) scope.adopt(r.pick([made, made[1], anything(r)]));
          if (r.chance(20)) scope.dispose();
          return r.chance(50) ? made : made[2];
        }),
      );
      if (r.chance(30)) scope.release(r.pick([inner, anything(r)]));
      scope.dispose();
      if (r.chance(50)) scope.dispose();
      return outer.add(1);
    },
  };
}

/** One of these. */
export function bridgeCall(r) {
  return r.pick([hooks, hooks, ownFunction, ownFunction, argumentCounts, argumentsThatAct, scopes])(
    r,
  );
}
