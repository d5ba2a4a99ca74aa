import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import {
  arange,
  fromBytes,
  linspace,
  memory,
  tensor,
  tidy,
  zeros,
  type Tensor,
  print,
} from 'torchformer';

// Every expected text is what PyTorch 2.13.0 prints for the same tensor.
describe('a tensor prints as in PyTorch', () => {
  const cases: [what: string, make: () => Tensor, text: string][] = [
    ['a number', () => tensor(2.5), 'tensor(2.5000)'],
    ['an integer', () => tensor(7n), 'tensor(7)'],
    ['a large integer', () => tensor(2n ** 53n + 1n), 'tensor(9007199254740993)'],
    ['a truth value', () => tensor(true), 'tensor(True)'],
    [
      'integers in columns',
      () => arange(12).reshape(3, 4),
      `tensor([[ 0,  1,  2,  3],
        [ 4,  5,  6,  7],
        [ 8,  9, 10, 11]])`,
    ],
    [
      'fractions',
      () =>
        tensor([
          [1, 2.5],
          [-3, 0.125],
        ]),
      `tensor([[ 1.0000,  2.5000],
        [-3.0000,  0.1250]])`,
    ],
    ['whole floats', () => tensor([1, 2, -3]), 'tensor([ 1.,  2., -3.])'],
    ['exact halves to even', () => tensor([0.03125, 0.09375]), 'tensor([0.0312, 0.0938])'],
    ['minus zero', () => tensor([-0, 1]), 'tensor([-0., 1.])'],
    ['zeros', () => zeros([2, 2]), 'tensor([[0., 0.],\n        [0., 0.]])'],
    ['a wide range', () => tensor([1e-5, 1, 3000]), 'tensor([1.0000e-05, 1.0000e+00, 3.0000e+03])'],
    ['large floats', () => tensor([1e9, 1]), 'tensor([1.0000e+09, 1.0000e+00])'],
    [
      'NaN and infinities',
      () => tensor([NaN, Infinity, -Infinity, 1]),
      'tensor([nan, inf, -inf, 1.])',
    ],
    ['only NaN', () => tensor([NaN]), 'tensor([nan])'],
    ['truth values', () => tensor([true, false]), 'tensor([ True, False])'],
    ['nothing', () => zeros([0]), 'tensor([])'],
    ['nothing in two dimensions', () => zeros([0, 3]), 'tensor([], size=(0, 3))'],
    ['no integers', () => zeros([0], { dtype: 'int64' }), 'tensor([], dtype=torch.int64)'],
    [
      'other dtypes with their names',
      () => tensor([1.5], { dtype: 'float64' }),
      'tensor([1.5000], dtype=torch.float64)',
    ],
    [
      'half floats',
      () => tensor([0.5, 1], { dtype: 'float16' }),
      'tensor([0.5000, 1.0000], dtype=torch.float16)',
    ],
    [
      'small integers',
      () => tensor([1, -2], { dtype: 'int8' }),
      'tensor([ 1, -2], dtype=torch.int8)',
    ],
    [
      'a leaf with gradients',
      () => tensor([1, 2], { requiresGrad: true }),
      'tensor([1., 2.], requires_grad=True)',
    ],
    [
      'a computed tensor',
      () => tensor([1, 2], { requiresGrad: true }).mul(tensor(2)),
      'tensor([2., 4.], grad_fn=<MulBackward0>)',
    ],
    [
      'long rows over several lines',
      () => arange(40),
      `tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        36, 37, 38, 39])`,
    ],
    [
      'blocks with an empty line between',
      () => arange(8).reshape(2, 2, 2),
      `tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])`,
    ],
    [
      'a long row summarised',
      () => arange(1001),
      'tensor([   0,    1,    2,  ...,  998,  999, 1000])',
    ],
    [
      'a large matrix summarised',
      () => arange(2000).float().reshape(2, 1000),
      `tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9700e+02, 9.9800e+02,
         9.9900e+02],
        [1.0000e+03, 1.0010e+03, 1.0020e+03,  ..., 1.9970e+03, 1.9980e+03,
         1.9990e+03]])`,
    ],
    [
      'suffixes on the last line that has room',
      () => linspace(0, 1, 11, { dtype: 'float64', requiresGrad: true }),
      `tensor([0.0000, 0.1000, 0.2000, 0.3000, 0.4000, 0.5000, 0.6000, 0.7000, 0.8000,
        0.9000, 1.0000], dtype=torch.float64, requires_grad=True)`,
    ],
  ];
  it.each(cases)('%s', (_what, make, text) => {
    expect(make().toString()).toBe(text);
  });

  it('rows are summarised too', () => {
    expect(arange(1800).reshape(30, 30, 2).toString().split('\n')).toHaveLength(49);
    expect(arange(1800).reshape(900, 2).toString()).toBe(`tensor([[   0,    1],
        [   2,    3],
        [   4,    5],
        ...,
        [1794, 1795],
        [1796, 1797],
        [1798, 1799]])`);
  });

  it('in console.log and util.inspect as well', () => {
    expect(inspect(tensor([1, 2]))).toBe('tensor([1., 2.])');
    expect(inspect({ x: tensor(1n) })).toBe('{ x: tensor(1) }');
  });

  it('and leaves no tensors behind', () => {
    tidy(() => {
      const x = zeros([50, 50], { requiresGrad: true });
      const before = memory().tensors;
      x.toString();
      x.half().dispose();
      expect(memory().tensors).toBe(before);
    });
  });

  it('also when its bytes are no numbers', () => {
    const pattern = new Uint8Array([0xff, 0xff, 0xff, 0xff]);
    expect(fromBytes(pattern, [1], 'float32').toString()).toBe('tensor([nan])');
  });
});

describe('print', () => {
  it('writes strings as they are and everything else as it is inspected, and a newline', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    try {
      print('x', tensor([1, 2]), 3, { ok: true });
      print();
      expect(write.mock.calls.map(([text]) => text)).toEqual([
        'x tensor([1., 2.]) 3 { ok: true }\n',
        '\n',
      ]);
    } finally {
      write.mockRestore();
    }
  });
});
