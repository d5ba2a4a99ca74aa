// Attention of one head by the parts in attention_parts.h, in blocks of queries whose scores stay
// in the cache. The order of all sums depends on the sizes of the head alone.

#include "core/loops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/loops/attention_parts.h"
#include "core/support/dropout_bits.h"

namespace torchformer::core {

namespace {

constexpr int64_t largestBlock = 64;

/// A multiple of the number of lanes of any vector.
constexpr int64_t anyLanes = 16;

int64_t roundedUp(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

/// Parts of a buffer, which begin at multiples of 64 bytes if the buffer does.
template <typename T>
class Scratch {
 public:
  explicit Scratch(T* start) : next_(start) {}
  T* take(int64_t size) {
    T* const part = next_;
    next_ += roundedUp(size, anyLanes);
    return part;
  }

 private:
  T* next_;
};

/// Rows that vectors can read to their last column, and write.
template <typename T>
class WholeVectors {
 public:
  WholeVectors(int64_t width, int64_t lanes) : width_(width), padded_(roundedUp(width, lanes)) {}
  int64_t width() const { return padded_; }

  /// The rows themselves, or a copy with columns of zeros.
  HeadRows<const T> read(const HeadRows<const T>& rows, Scratch<T>& scratch) const {
    if (width_ == padded_) return rows;
    T* const copy = scratch.take(rows.rows * padded_);
    for (int64_t i = 0; i < rows.rows; ++i) {
      T* const end = std::copy_n(rows.row(i), width_, copy + i * padded_);
      std::fill(end, copy + (i + 1) * padded_, T(0));
    }
    return {copy, rows.rows, padded_};
  }

  /// The rows themselves, or a buffer for `finish`.
  HeadRows<T> write(const HeadRows<T>& rows, Scratch<T>& scratch) const {
    if (width_ == padded_) return rows;
    return {scratch.take(rows.rows * padded_), rows.rows, padded_};
  }

  void finish(const HeadRows<T>& written, const HeadRows<T>& rows) const {
    if (width_ == padded_) return;
    for (int64_t i = 0; i < rows.rows; ++i) std::copy_n(written.row(i), width_, rows.row(i));
  }

 private:
  int64_t width_;
  int64_t padded_;
};

template <typename T>
HeadRows<T> rowsFrom(const HeadRows<T>& rows, int64_t first, int64_t count) {
  return {rows.row(first), count, rows.stride};
}

/// How the queries of a head are cut into blocks of about the same size.
struct Blocks {
  int64_t count;
  int64_t size;  // of all but the last one

  Blocks(int64_t queries, int64_t lanes) {
    const auto most = (queries + largestBlock - 1) / largestBlock;
    size = most == 0 ? 0 : roundedUp((queries + most - 1) / most, lanes);
    count = most == 0 ? 0 : (queries + size - 1) / size;
  }
};

/// The block of queries that is worked on.
template <typename T>
class Block {
 public:
  Block(const Head<T>& head, const AttentionSettings& settings, int64_t first, int64_t count)
      : parts_(attentionParts<T>()),
        head_(head),
        causal_(settings.causal),
        first_(first),
        count_(count),
        columns_(roundedUp(count, parts_.lanes)),
        keys_(settings.causal ? std::min(head.key.rows, first + count) : head.key.rows),
        threshold_(dropThreshold(settings.dropoutP)) {
    if (settings.dropoutP > 0.0) {
      drops_ = true;
      dropoutRowKeys(settings.seed,
                     static_cast<uint64_t>(head.firstMaskRow + first * head.maskRowStep),
                     static_cast<uint64_t>(head.maskRowStep), columns_, low_, high_);
    }
  }

  int64_t columns() const { return columns_; }
  int64_t keys() const { return keys_; }

  /// out[j][i] = factor * left_j . rows_i for keys j and queries i; `turned` is a buffer.
  void productWithKeys(const HeadRows<const T>& left, const HeadRows<const T>& rows, int64_t width,
                       int64_t paddedWidth, T rowFactor, T factor, T* turned, T* out) const {
    parts_.transposeRows(
        {rows.data, rows.stride, count_, paddedWidth, rowFactor, turned, columns_});
    SmallProduct<T> product{left.data, left.stride, 1, turned, columns_, out,
                            columns_,  &factor,     0, keys_,  columns_, width};
    if (causal_) product.columnShift = first_;
    parts_.multiply(product);
  }

  /// out_i = factors_i * sum over keys j of matrix[j][i] * rows_j, for each query.
  void sumOverKeys(const T* matrix, const HeadRows<const T>& rows, const T* factors,
                   int64_t factorStep, int64_t paddedWidth, const HeadRows<T>& out) const {
    SmallProduct<T> product{matrix,     1,       columns_,   rows.data, rows.stride, out.data,
                            out.stride, factors, factorStep, count_,    paddedWidth, keys_};
    if (causal_) product.depthEnd = first_;
    parts_.multiply(product);
  }

  /// out_j (+)= factor * sum over queries i of matrix[j][i] * rows_i, for each key.
  void sumOverQueries(const T* matrix, const HeadRows<const T>& rows, T factor, int64_t paddedWidth,
                      bool adds, const HeadRows<T>& out) const {
    SmallProduct<T> product{matrix,      columns_,   1,       rows.data, rows.stride,
                            out.data,    out.stride, &factor, 0,         keys_,
                            paddedWidth, count_,     adds};
    if (causal_) product.depthStart = first_;
    parts_.multiply(product);
  }

  void setBlocked(T* matrix, T value) const {
    if (head_.mask.allowed == nullptr) return;
    const auto stride = head_.mask.stride;
    const auto* allowed = head_.mask.allowed + (stride == 0 ? 0 : first_);
    core::setBlocked(matrix, keys_, columns_, allowed, stride, value);
  }

  ScoreBlock<T> scores(T* matrix) const {
    return {matrix,
            keys_,
            columns_,
            causal_ ? first_ : -1,
            drops_ ? low_ : nullptr,
            drops_ ? high_ : nullptr,
            threshold_};
  }

 private:
  const AttentionParts<T>& parts_;
  const Head<T>& head_;
  bool causal_;
  bool drops_ = false;
  int64_t first_;
  int64_t count_;
  int64_t columns_;
  int64_t keys_;
  uint32_t threshold_;
  alignas(64) uint32_t low_[largestBlock];
  alignas(64) uint32_t high_[largestBlock];
};

/// The factor of queries that makes their products scores in units of log2.
template <typename T>
T queryFactor(const AttentionSettings& settings) {
  constexpr double log2e = 1.44269504088896340736;
  return static_cast<T>(settings.scoreScale() * log2e);
}

template <typename T>
constexpr T lowestScore = std::numeric_limits<T>::lowest();

template <typename T>
void writeWeights(const T* powers, int64_t columns, int64_t keys, const T* factors,
                  const HeadRows<T>& weights) {
  for (int64_t i = 0; i < weights.rows; ++i) {
    T* const row = weights.row(i);
    for (int64_t j = 0; j < keys; ++j) row[j] = powers[j * columns + i] * factors[i];
  }
}

template <typename T>
void addTransposed(const HeadRows<const T>& rows, int64_t columns, int64_t keys, T factor, T* out) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    const T* const row = rows.row(i);
    for (int64_t j = 0; j < keys; ++j) out[j * columns + i] += factor * row[j];
  }
}

}  // namespace

double AttentionSettings::scoreScale() const { return 1.0 / std::sqrt(static_cast<double>(width)); }

int64_t maskColumns(int64_t queries) { return roundedUp(queries, anyLanes); }

template <typename T>
int64_t attentionScratchSize(int64_t queries, int64_t keys, const AttentionSettings& settings) {
  const auto block = roundedUp(std::min(queries, largestBlock), anyLanes);
  const auto width = roundedUp(settings.width, anyLanes);
  const auto valueWidth = roundedUp(settings.valueWidth, anyLanes);
  // Transposed rows, scores and their gradients; then copies of rows with padded columns.
  return block * (width + valueWidth) + 2 * block * keys +
         (2 * block + 2 * keys) * (width + valueWidth) + 16 * anyLanes;
}

template <typename T>
void attendHead(const Head<T>& head, const HeadRows<T>& output, const SoftmaxSums<T>& sums,
                const HeadRows<T>& weights, const AttentionSettings& settings, T* scratch) {
  const auto& parts = attentionParts<T>();
  const WholeVectors<T> queryVectors(settings.width, parts.lanes);
  const WholeVectors<T> valueVectors(settings.valueWidth, parts.lanes);
  const auto survivors = static_cast<T>(survivorScale(settings.dropoutP));
  Scratch<T> shared(scratch);
  const auto value = valueVectors.read(head.value, shared);
  const Blocks blocks(head.query.rows, parts.lanes);
  for (int64_t b = 0; b < blocks.count; ++b) {
    const auto first = b * blocks.size;
    const auto count = std::min(blocks.size, head.query.rows - first);
    const Block<T> block(head, settings, first, count);
    Scratch<T> own = shared;
    T* const turned = own.take(queryVectors.width() * block.columns());
    T* const scores = own.take(block.keys() * block.columns());
    const auto query = queryVectors.read(rowsFrom(head.query, first, count), own);
    block.productWithKeys(head.key, query, settings.width, queryVectors.width(),
                          queryFactor<T>(settings), T(1), turned, scores);
    block.setBlocked(scores, lowestScore<T>);

    alignas(64) T highest[largestBlock];
    alignas(64) T inverse[largestBlock];
    parts.softmax(block.scores(scores), highest, inverse);
    if (head.mask.cleared != nullptr) {
      for (int64_t i = 0; i < count; ++i) {
        if (head.mask.cleared[head.mask.stride == 0 ? 0 : first + i] != 0) inverse[i] = 0;
      }
    }
    std::copy_n(highest, count, sums.highest + first);
    std::copy_n(inverse, count, sums.inverse + first);

    T* const factors = inverse;
    for (int64_t i = 0; i < count; ++i) factors[i] *= survivors;
    const auto target = rowsFrom(output, first, count);
    const auto written = valueVectors.write(target, own);
    block.sumOverKeys(scores, value, factors, 1, valueVectors.width(), written);
    valueVectors.finish(written, target);
    if (weights.data != nullptr) {
      writeWeights(scores, block.columns(), block.keys(), factors, rowsFrom(weights, first, count));
    }
  }
}

template <typename T>
void attendHeadBackward(const Head<T>& head, const SoftmaxSums<const T>& sums,
                        const HeadRows<const T>& gradOutput, const HeadRows<const T>& gradWeights,
                        const HeadRows<T>& gradQuery, const HeadRows<T>& gradKey,
                        const HeadRows<T>& gradValue, const AttentionSettings& settings,
                        T* scratch) {
  const auto& parts = attentionParts<T>();
  const WholeVectors<T> queryVectors(settings.width, parts.lanes);
  const WholeVectors<T> valueVectors(settings.valueWidth, parts.lanes);
  const auto survivors = static_cast<T>(survivorScale(settings.dropoutP));
  const auto scale = static_cast<T>(settings.scoreScale());
  Scratch<T> shared(scratch);
  const auto key = queryVectors.read(head.key, shared);
  const auto keySum = queryVectors.write(gradKey, shared);
  const auto valueSum = valueVectors.write(gradValue, shared);
  const Blocks blocks(head.query.rows, parts.lanes);
  // The last block sees all keys and is the first to write their sums.
  for (int64_t b = blocks.count - 1; b >= 0; --b) {
    const auto first = b * blocks.size;
    const auto count = std::min(blocks.size, head.query.rows - first);
    const bool adds = b + 1 < blocks.count;
    const Block<T> block(head, settings, first, count);
    Scratch<T> own = shared;
    T* const turned =
        own.take(std::max(queryVectors.width(), valueVectors.width()) * block.columns());
    T* const scores = own.take(block.keys() * block.columns());
    T* const gradients = own.take(block.keys() * block.columns());
    const auto query = queryVectors.read(rowsFrom(head.query, first, count), own);
    const auto upstream = valueVectors.read(rowsFrom(gradOutput, first, count), own);
    block.productWithKeys(head.key, query, settings.width, queryVectors.width(),
                          queryFactor<T>(settings), T(1), turned, scores);
    block.setBlocked(scores, lowestScore<T>);
    block.productWithKeys(head.value, upstream, settings.valueWidth, valueVectors.width(), T(1),
                          survivors, turned, gradients);
    if (gradWeights.data != nullptr) {
      addTransposed(rowsFrom(gradWeights, first, count), block.columns(), block.keys(), survivors,
                    gradients);
    }

    alignas(64) T highest[largestBlock] = {};
    alignas(64) T inverse[largestBlock] = {};
    std::copy_n(sums.highest + first, count, highest);
    std::copy_n(sums.inverse + first, count, inverse);
    parts.softmaxGradient(block.scores(scores), highest, inverse, gradients);
    block.setBlocked(gradients, T(0));

    const auto target = rowsFrom(gradQuery, first, count);
    const auto written = queryVectors.write(target, own);
    block.sumOverKeys(gradients, key, &scale, 0, queryVectors.width(), written);
    queryVectors.finish(written, target);
    block.sumOverQueries(gradients, query, scale, queryVectors.width(), adds, keySum);
    block.sumOverQueries(scores, upstream, survivors, valueVectors.width(), adds, valueSum);
  }
  queryVectors.finish(keySum, gradKey);
  valueVectors.finish(valueSum, gradValue);
}

template int64_t attentionScratchSize<float>(int64_t, int64_t, const AttentionSettings&);
template int64_t attentionScratchSize<double>(int64_t, int64_t, const AttentionSettings&);
template void attendHead(const Head<float>&, const HeadRows<float>&, const SoftmaxSums<float>&,
                         const HeadRows<float>&, const AttentionSettings&, float*);
template void attendHead(const Head<double>&, const HeadRows<double>&, const SoftmaxSums<double>&,
                         const HeadRows<double>&, const AttentionSettings&, double*);
template void attendHeadBackward(const Head<float>&, const SoftmaxSums<const float>&,
                                 const HeadRows<const float>&, const HeadRows<const float>&,
                                 const HeadRows<float>&, const HeadRows<float>&,
                                 const HeadRows<float>&, const AttentionSettings&, float*);
template void attendHeadBackward(const Head<double>&, const SoftmaxSums<const double>&,
                                 const HeadRows<const double>&, const HeadRows<const double>&,
                                 const HeadRows<double>&, const HeadRows<double>&,
                                 const HeadRows<double>&, const AttentionSettings&, double*);

}  // namespace torchformer::core
