import { describe, expect, it } from 'vitest';
import { arange, einsum, linalg, ones, tensor, zeros, type Tensor } from 'torchformer';

const list = (x: Tensor): unknown => x.toArray();
const near = (x: Tensor): number[] =>
  Array.from(x.double().data() as Float64Array, (v) => Number(v.toPrecision(6)));
const float64 = (values: number[][]) => tensor(values, { dtype: 'float64' });
/** Symmetric and positive-definite, determinant 5. */
const m = float64([
  [2, 1],
  [1, 3],
]);

describe('products', () => {
  it('of vectors and matrices', () => {
    const [a, b] = [tensor([1, 2]), tensor([10, 20])];
    expect(a.dot(b).item()).toBe(50);
    expect(list(a.outer(b))).toEqual([
      [10, 20],
      [20, 40],
    ]);
    const matrix = tensor([
      [1, 2],
      [3, 4],
    ]);
    expect(list(matrix.mv(a))).toEqual([5, 11]);
    expect(list(b.addmm(matrix, matrix, { beta: 0.1, alpha: 2 }))).toEqual([
      [15, 22],
      [31, 46],
    ]);
    expect(
      ones([3, 2, 4])
        .baddbmm(ones([3, 2, 5]), ones([3, 5, 4]))
        .sum()
        .item(),
    ).toBe(144);
    expect(list(tensor([1, 2]).kron(tensor([1, 10])))).toEqual([1, 10, 2, 20]);
    expect(list(zeros([1, 2]).cdist(tensor([[3, 4]])))).toEqual([[5]]);
    expect(list(zeros([1, 2]).cdist(tensor([[3, 4]]), 1))).toEqual([[7]]);
  });

  it('einsum', () => {
    const x = arange(4, { dtype: 'float32' }).reshape(2, 2);
    expect(list(einsum('ij,jk->ik', x, x))).toEqual(list(x.mm(x)));
    expect(list(einsum('ij->ji', x))).toEqual(list(x.t()));
    expect(einsum('ii', x).item()).toBe(3);
    expect(list(einsum('ii->i', x))).toEqual([0, 3]);
    expect(einsum('i,i->', tensor([1, 2]), tensor([3, 4])).item()).toBe(11);
    expect(einsum('b...i,...ij->b...j', zeros([5, 2, 3]), zeros([2, 3, 4])).shape).toEqual([
      5, 2, 4,
    ]);
    expect(einsum('bhqd,bhkd->bhqk', zeros([1, 2, 3, 4]), zeros([1, 2, 5, 4])).shape).toEqual([
      1, 2, 3, 5,
    ]);
  });
});

describe('linalg', () => {
  it('inverses, determinants and equations', () => {
    expect(near(linalg.inv(m))).toEqual([0.6, -0.2, -0.2, 0.4]);
    expect(near(linalg.det(m))).toEqual([5]);
    const { sign, logabsdet } = linalg.slogdet(m);
    expect([near(sign), near(logabsdet)]).toEqual([[1], [1.60944]]);
    // 2x + y = 4, x + 3y = 7
    expect(near(linalg.solve(m, tensor([4, 7], { dtype: 'float64' })))).toEqual([1, 2]);
    expect(near(linalg.pinv(float64([[1, 2]])))).toEqual([0.2, 0.4]);
    expect(near(linalg.lstsq(float64([[1], [1]]), float64([[1], [3]])))).toEqual([2]);
    expect(near(linalg.matrixPower(m, 2))).toEqual([5, 5, 5, 10]);
    expect(near(linalg.matrixPower(m, -1))).toEqual([0.6, -0.2, -0.2, 0.4]);
    expect(
      linalg
        .matrixRank(
          float64([
            [1, 2],
            [2, 4],
          ]),
        )
        .item(),
    ).toBe(1);
    expect(list(linalg.cross(tensor([1, 0, 0]), tensor([0, 1, 0])))).toEqual([0, 0, 1]);
  });

  it('norms', () => {
    expect(near(linalg.matrixNorm(m))).toEqual([3.87298]);
    expect(near(linalg.matrixNorm(m, 'nuc'))).toEqual([5]);
    expect(near(linalg.matrixNorm(m, 1))).toEqual([4]);
    expect(near(linalg.matrixNorm(m, 2))).toEqual([3.61803]);
    expect(near(linalg.vectorNorm(m, 1))).toEqual([7]);
    expect(near(linalg.norm(m))).toEqual([3.87298]);
    expect(near(linalg.norm(m, 'nuc'))).toEqual([5]);
    expect(near(linalg.norm(m, 1, 0))).toEqual([3, 4]);
  });

  it('decompositions give the matrix back', () => {
    const wide = float64([
      [1, 2, 3],
      [4, 5, 7],
    ]);
    const { U, S, Vh } = linalg.svd(wide, { fullMatrices: false });
    expect([U.shape, S.shape, Vh.shape]).toEqual([[2, 2], [2], [2, 3]]);
    expect(U.mul(S).mm(Vh).allclose(wide)).toBe(true);
    expect(linalg.svd(wide).Vh.shape).toEqual([3, 3]);
    expect(near(linalg.svdvals(m))).toEqual([3.61803, 1.38197]);
    const { Q, R } = linalg.qr(m);
    expect(Q.mm(R).allclose(m)).toBe(true);
    expect(R.tril(-1).abs().max().item()).toBe(0);
    const lower = linalg.cholesky(m);
    expect(near(lower)).toEqual([1.41421, 0, 0.707107, 1.58114]);
    expect(linalg.cholesky(m, { upper: true }).allclose(lower.t())).toBe(true);
    const { eigenvalues, eigenvectors } = linalg.eigh(m);
    expect(near(eigenvalues)).toEqual([1.38197, 3.61803]);
    expect(eigenvectors.mul(eigenvalues).mm(eigenvectors.t()).allclose(m)).toBe(true);
    expect(near(linalg.eigvalsh(m))).toEqual([1.38197, 3.61803]);
  });

  it('passes gradients: d det / dm = det · inverse transposed', () => {
    const y = m.detach().clone().requiresGrad_();
    linalg.det(y).backward();
    expect(near(y.grad as Tensor)).toEqual([3, -1, -1, 2]);
  });

  it('says what cannot be solved', () => {
    const singular = float64([
      [1, 2],
      [2, 4],
    ]);
    expect(() => linalg.inv(singular)).toThrow(/singular/);
    expect(() => linalg.solve(singular, singular)).toThrow(/singular/);
    expect(() => linalg.cholesky(m.neg())).toThrow(/not positive-definite/);
  });
});

describe('faulty arguments', () => {
  const x = zeros([2, 3]);
  const cases: [ErrorConstructor, string, () => unknown][] = [
    [RangeError, 'dot: needs two vectors of one size, got [2, 3] and [3]', () => x.dot(zeros([3]))],
    [RangeError, 'outer: needs two vectors, got [2, 3] and [3]', () => x.outer(zeros([3]))],
    [RangeError, 'mv: needs shapes [R, K] and [K], got [2, 3] and [2]', () => x.mv(zeros([2]))],
    [RangeError, 'addmm: needs shapes [R, K] and [K, C]', () => x.addmm(x, x)],
    [
      RangeError,
      'addmm: the tensor [2, 3] cannot be broadcast to the shape [2, 2]',
      () => x.addmm(x, x.t()),
    ],
    [RangeError, 'baddbmm: needs shapes [B, R, K] and [B, K, C]', () => x.baddbmm(x, x)],
    [RangeError, 'cdist: needs shapes […, P, D] and […, Q, D]', () => x.cdist(x.t())],
    [
      RangeError,
      'linalg.inv: input must be square matrices […, N, N], got [2, 3]',
      () => linalg.inv(x),
    ],
    [
      RangeError,
      'linalg.svd: input must be matrices […, R, C], got [3]',
      () => linalg.svd(zeros([3])),
    ],
    [
      TypeError,
      'linalg.det: needs a floating-point tensor',
      () => linalg.det(arange(4).view(2, 2)),
    ],
    [TypeError, 'linalg.qr: input must be a Tensor, got 1', () => linalg.qr(1 as never)],
    [
      RangeError,
      "linalg.matrixNorm: ord must be 'fro', 'nuc', ±1, ±2 or ±Infinity, got 3",
      () => linalg.matrixNorm(x, 3),
    ],
    [
      RangeError,
      'einsum: "j" has size 3 in one tensor and 2 in tensors[1]',
      () => einsum('ij,jk', x, x),
    ],
    [RangeError, 'einsum: "ij,jk" has 2 operands, got 1 tensors', () => einsum('ij,jk', x)],
    [
      RangeError,
      'einsum: "i" has 1 dimensions, but tensors[0] has shape [2, 3]',
      () => einsum('i->i', x),
    ],
    [TypeError, "einsum: equation must be a string like 'ij,jk->ik'", () => einsum(x as never, x)],
  ];
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });
});
