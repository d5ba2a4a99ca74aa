// The innermost loops of attention. Sequences of a translation corpus have 10 to 50 tokens and
// heads have 32 to 128 features: a matrix library loses more time around such products than in
// them.
//
// A product is cut into tiles whose sums stay in registers: `rows` numbers of the left factor,
// times `vectors` vectors of a row of the right one.

#include "core/loops/attention_parts.h"

#include <algorithm>
#include <limits>

#include "core/loops/simd.h"
#include "core/loops/vector.h"
#include "core/support/dropout_bits.h"

namespace torchformer::core {

namespace {

/// The largest tiles for which there are registers: 32 with AVX-512, else 16.
constexpr int mostVectors(int bytes) { return bytes == 64 ? 4 : 2; }

constexpr int mostRows(int bytes, int vectors) {
  if (bytes == 64) return vectors == 4 ? 6 : 8;
  return bytes == 32 ? 6 : 4;
}

template <typename T, int bytes, int rows, int vectors>
TF_INLINE void multiplyTile(const SmallProduct<T>& p, int64_t row, int64_t column, int64_t start,
                            int64_t end) {
  using Vector = typename Lanes<T, bytes>::Vector;
  constexpr int lanes = Lanes<T, bytes>::size;
  Vector sums[rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[i][v] = Vector{};
  }
  const T* a = p.a + row * p.aRow + start * p.aDepth;
  const T* b = p.b + start * p.bRow + column;
  for (int64_t k = start; k < end; ++k) {
    Vector y[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) y[v] = loadVector<Vector>(b + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const T x = a[i * p.aRow];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[i][v] += x * y[v];
    }
    a += p.aDepth;
    b += p.bRow;
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    const T factor = p.factors[(row + i) * p.factorStep];
    T* const out = p.out + (row + i) * p.outRow + column;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Vector result = factor * sums[i][v];
      if (p.adds) result += loadVector<Vector>(out + v * lanes);
      storeVector(out + v * lanes, result);
    }
  }
}

/// A tile of `count` rows, 1 to `rows`.
template <typename T, int bytes, int rows, int vectors>
TF_INLINE void multiplyTileOf(int64_t count, const SmallProduct<T>& p, int64_t row, int64_t column,
                              int64_t start, int64_t end) {
  if (count == rows) {
    multiplyTile<T, bytes, rows, vectors>(p, row, column, start, end);
  } else if constexpr (rows > 1) {
    multiplyTileOf<T, bytes, rows - 1, vectors>(count, p, row, column, start, end);
  }
}

template <typename T, int bytes, int vectors>
TF_INLINE void multiplyColumns(const SmallProduct<T>& p, int64_t column) {
  constexpr int64_t most = mostRows(bytes, vectors);
  constexpr int64_t width = vectors * Lanes<T, bytes>::size;
  const auto rows = std::min(p.rows, column + width + p.columnShift);
  for (int64_t row = 0, tiles = (rows + most - 1) / most; tiles > 0; --tiles) {
    // Tiles of about the same size: a small one at the end would wait for its sums.
    const auto count = (rows - row + tiles - 1) / tiles;
    const auto start = std::max<int64_t>(0, row - p.depthStart);
    const auto end = std::min(p.depth, row + count + p.depthEnd);
    multiplyTileOf<T, bytes, static_cast<int>(most), vectors>(count, p, row, column, start, end);
    row += count;
  }
}

template <typename T, int bytes>
TF_INLINE void multiplyBy(const SmallProduct<T>& p) {
  constexpr int lanes = Lanes<T, bytes>::size;
  constexpr int most = mostVectors(bytes);
  int64_t column = 0;
  for (; column + most * lanes <= p.columns; column += most * lanes) {
    multiplyColumns<T, bytes, most>(p, column);
  }
  const auto rest = (p.columns - column) / lanes;
  if (rest == 1) multiplyColumns<T, bytes, 1>(p, column);
  if constexpr (most == 4) {
    if (rest == 2) multiplyColumns<T, bytes, 2>(p, column);
    if (rest == 3) multiplyColumns<T, bytes, 3>(p, column);
  }
}

template <typename T, int bytes>
TF_INLINE void transposeBy(const Transposition<T>& t) {
  using Vector = typename Lanes<T, bytes>::Vector;
  constexpr int lanes = Lanes<T, bytes>::size;
  for (int64_t row = 0; row < t.columns; row += lanes) {
    const auto count = std::min<int64_t>(lanes, t.count - row);
    for (int64_t column = 0; column < t.width; column += lanes) {
      Vector square[lanes];
      const T* const from = t.rows + row * t.stride + column;
      if (count == lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i)
          square[i] = t.factor * loadVector<Vector>(from + i * t.stride);
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) {
          square[i] = i < count ? t.factor * loadVector<Vector>(from + i * t.stride) : Vector{};
        }
      }
      transposeLanes<T, bytes>(square);
      T* const to = t.out + column * t.columns + row;
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) storeVector(to + i * t.columns, square[i]);
    }
  }
}

/// A vector of queries with its scores, one vector for each key.
template <typename T, int bytes>
struct Column {
  using Kind = Lanes<T, bytes>;
  using Vector = typename Kind::Vector;
  static constexpr int lanes = Kind::size;

  const ScoreBlock<T>& block;
  int64_t first;    // query
  int64_t visible;  // keys that some query sees
  int64_t seen;     // keys that all queries see
  typename Kind::Bits low{}, high{};

  TF_INLINE Column(const ScoreBlock<T>& given, int64_t column)
      : block(given), first(column), visible(given.keys), seen(given.keys) {
    if (block.causalStart >= 0) {
      seen = std::min(block.keys, block.causalStart + first + 1);
      visible = std::min(block.keys, block.causalStart + first + lanes);
    }
    if (block.low != nullptr) {
      low = loadVector<typename Kind::Bits>(block.low + first);
      high = loadVector<typename Kind::Bits>(block.high + first);
    }
  }

  TF_INLINE T* at(T* matrix, int64_t key) const { return matrix + key * block.columns + first; }

  /// Sets what lies above the diagonal.
  TF_INLINE void setHidden(T* matrix, T value) const {
    typename Kind::Integers lane;
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) lane[i] = i;
    for (int64_t key = seen; key < visible; ++key) {
      const auto lowest = static_cast<typename Kind::Integer>(key - seen + 1);
      const auto number = loadVector<Vector>(at(matrix, key));
      storeVector(at(matrix, key), Vector(lane < lowest ? Vector{} + value : number));
    }
  }

  /// Zeros the rows of keys that no query sees.
  TF_INLINE void clearUnseen(T* matrix) const {
    for (int64_t key = visible; key < block.keys; ++key) storeVector(at(matrix, key), Vector{});
  }

  /// All bits of a lane are set where the mask keeps the weight of this key.
  TF_INLINE typename Kind::Integers kept(int64_t key) const {
    const typename Kind::Bits hash = dropoutHash(static_cast<uint32_t>(key), low, high);
    const typename Kind::SignedBits keeps = hash >= block.threshold;
    return __builtin_convertvector(keeps, typename Kind::Integers);
  }
};

template <typename T, int bytes, bool drops>
TF_INLINE void softmaxOf(const Column<T, bytes>& column, T* highest, T* inverse) {
  using Vector = typename Lanes<T, bytes>::Vector;
  T* const scores = column.block.scores;
  column.setHidden(scores, -std::numeric_limits<T>::infinity());
  Vector most = Vector{} - std::numeric_limits<T>::infinity();
  for (int64_t key = 0; key < column.visible; ++key) {
    const auto score = loadVector<Vector>(column.at(scores, key));
    most = score > most ? score : most;
  }
  Vector sum{};
  for (int64_t key = 0; key < column.visible; ++key) {
    T* const at = column.at(scores, key);
    Vector power = vectorExp2<bytes>(Vector(loadVector<Vector>(at) - most));
    sum += power;
    if constexpr (drops) power = column.kept(key) ? power : Vector{};
    storeVector(at, power);
  }
  column.clearUnseen(scores);
  storeVector(highest + column.first, most);
  storeVector(inverse + column.first, Vector(T(1) / sum));
}

template <typename T, int bytes>
TF_INLINE void softmaxBy(const ScoreBlock<T>& block, T* highest, T* inverse) {
  for (int64_t first = 0; first < block.columns; first += Lanes<T, bytes>::size) {
    const Column<T, bytes> column(block, first);
    if (block.low != nullptr) {
      softmaxOf<T, bytes, true>(column, highest, inverse);
    } else {
      softmaxOf<T, bytes, false>(column, highest, inverse);
    }
  }
}

template <typename T, int bytes, bool drops>
TF_INLINE void softmaxGradientOf(const Column<T, bytes>& column, const T* highest, const T* inverse,
                                 T* gradients) {
  using Vector = typename Lanes<T, bytes>::Vector;
  T* const scores = column.block.scores;
  column.setHidden(scores, -std::numeric_limits<T>::infinity());
  const auto most = loadVector<Vector>(highest + column.first);
  const auto factor = loadVector<Vector>(inverse + column.first);
  Vector along{};
  for (int64_t key = 0; key < column.visible; ++key) {
    T* const scoreAt = column.at(scores, key);
    T* const gradientAt = column.at(gradients, key);
    Vector weight = vectorExp2<bytes>(Vector(loadVector<Vector>(scoreAt) - most)) * factor;
    auto gradient = loadVector<Vector>(gradientAt);
    if constexpr (drops) {
      // Until the sum is known, the sign of a weight tells that it is dropped.
      const auto kept = column.kept(key);
      gradient = kept ? gradient : Vector{};
      along += weight * gradient;
      weight = kept ? weight : -weight;
      storeVector(gradientAt, gradient);
    } else {
      along += weight * gradient;
    }
    storeVector(scoreAt, weight);
  }
  for (int64_t key = 0; key < column.visible; ++key) {
    T* const scoreAt = column.at(scores, key);
    T* const gradientAt = column.at(gradients, key);
    auto weight = loadVector<Vector>(scoreAt);
    if constexpr (drops) {
      const Vector used = weight < T(0) ? Vector{} : weight;
      storeVector(scoreAt, used);
      weight = weight < T(0) ? -weight : weight;
    }
    storeVector(gradientAt, Vector(weight * (loadVector<Vector>(gradientAt) - along)));
  }
  // Where a query is not finite, neither are its weights; still it sees no later key.
  column.setHidden(scores, T(0));
  column.setHidden(gradients, T(0));
  column.clearUnseen(scores);
  column.clearUnseen(gradients);
}

template <typename T, int bytes>
TF_INLINE void softmaxGradientBy(const ScoreBlock<T>& block, const T* highest, const T* inverse,
                                 T* gradients) {
  for (int64_t first = 0; first < block.columns; first += Lanes<T, bytes>::size) {
    const Column<T, bytes> column(block, first);
    if (block.low != nullptr) {
      softmaxGradientOf<T, bytes, true>(column, highest, inverse, gradients);
    } else {
      softmaxGradientOf<T, bytes, false>(column, highest, inverse, gradients);
    }
  }
}

template <typename T>
TF_INLINE void setBlockedIn(T* scores, int64_t keys, int64_t columns, const uint8_t* allowed,
                            int64_t allowedStride, T value) {
  for (int64_t key = 0; key < keys; ++key) {
    T* const row = scores + key * columns;
    if (allowedStride == 0) {
      if (allowed[key] == 0) std::fill(row, row + columns, value);
      continue;
    }
    const uint8_t* const flags = allowed + key * allowedStride;
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] = flags[i] != 0 ? row[i] : value;
  }
}

// One set of functions for each size of vectors, which differ in their sets of instructions.
#define TF_DEFINE_PARTS(name, target, T, bytes)                                               \
  namespace name {                                                                            \
  target void transposeRows(const Transposition<T>& t) { transposeBy<T, bytes>(t); }          \
  target void multiply(const SmallProduct<T>& product) { multiplyBy<T, bytes>(product); }     \
  target void softmax(const ScoreBlock<T>& block, T* highest, T* inverse) {                   \
    softmaxBy<T, bytes>(block, highest, inverse);                                             \
  }                                                                                           \
  target void softmaxGradient(const ScoreBlock<T>& block, const T* highest, const T* inverse, \
                              T* gradients) {                                                 \
    softmaxGradientBy<T, bytes>(block, highest, inverse, gradients);                          \
  }                                                                                           \
  constexpr AttentionParts<T> parts{Lanes<T, bytes>::size, transposeRows, multiply, softmax,  \
                                    softmaxGradient};                                         \
  }

// Of float64, which is for checks of gradients, one set is enough.
TF_DEFINE_PARTS(plainDouble, TF_PLAIN, double, 16)
TF_DEFINE_PARTS(plain, TF_PLAIN, float, 16)
#if TF_HAS_WIDE_VECTORS
TF_DEFINE_PARTS(avx2, TF_AVX2, float, 32)
TF_DEFINE_PARTS(avx512, TF_AVX512, float, 64)
#endif

}  // namespace

template <>
const AttentionParts<double>& attentionParts() {
  return plainDouble::parts;
}

template <>
const AttentionParts<float>& attentionParts() {
#if TF_HAS_WIDE_VECTORS
  if (widestVectors() == 64) return avx512::parts;
  if (widestVectors() == 32) return avx2::parts;
#endif
  return plain::parts;
}

TF_VECTORIZED void setBlocked(float* scores, int64_t keys, int64_t columns, const uint8_t* allowed,
                              int64_t allowedStride, float value) {
  setBlockedIn(scores, keys, columns, allowed, allowedStride, value);
}

void setBlocked(double* scores, int64_t keys, int64_t columns, const uint8_t* allowed,
                int64_t allowedStride, double value) {
  setBlockedIn(scores, keys, columns, allowed, allowedStride, value);
}

TF_VECTORIZED void dropoutRowKeys(uint64_t seed, uint64_t first, uint64_t step, int64_t count,
                                  uint32_t* low, uint32_t* high) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto key = dropoutRowKey(seed, first + static_cast<uint64_t>(i) * step);
    low[i] = static_cast<uint32_t>(key);
    high[i] = static_cast<uint32_t>(key >> 32);
  }
}

}  // namespace torchformer::core
