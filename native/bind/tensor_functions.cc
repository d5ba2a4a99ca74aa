// The addon's functions for single tensors: data in and out, properties, gradients, dispose.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/function.h>

#include <cstring>

#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "names.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

Napi::Value makeIntegers(Napi::Env env, at::IntArrayRef values) {
  const Napi::Array array = Napi::Array::New(env, values.size());
  for (size_t i = 0; i < values.size(); i++) {
    array.Set(static_cast<uint32_t>(i), makeInteger(env, values[i]));
  }
  return array;
}

struct Bytes {
  const void* data = nullptr;
  size_t size = 0;
};

Bytes bytesOf(const Napi::Value& view) {
  if (view.IsTypedArray()) {
    const auto array = view.As<Napi::TypedArray>();
    const auto* start = static_cast<const char*>(array.ArrayBuffer().Data());
    return {start + array.ByteOffset(), array.ByteLength()};
  }
  if (view.IsDataView()) {
    const auto dataView = view.As<Napi::DataView>();
    return {dataView.Data(), dataView.ByteLength()};
  }
  throw BridgeError("ERR_ARGUMENT",
                    "data must be a typed array or DataView, got " + describeValue(view));
}

// The number of elements of a shape; an overflow throws instead of giving a wrong number.
int64_t countElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t size : shape) {
    if (size < 0) throw BridgeError("ERR_SHAPE", "shape must have no negative sizes");
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (overflow) throw BridgeError("ERR_SHAPE", "shape has too many elements");
  return count;
}

Napi::Value fromBytes(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const Bytes bytes = bytesOf(info[0]);
  std::vector<int64_t> shape;
  for (const Napi::Value& size : arrayOf(info[1], "shape")) {
    shape.push_back(integerOf(size, "a size of shape"));
  }
  const std::string dtypeName = stringOf(info[2], "dtype");
  const auto dtype = scalarTypeOf(dtypeName);
  if (!dtype) {
    throw BridgeError("ERR_DTYPE",
                      "dtype must be one of " + scalarTypeNames() + ", got \"" + dtypeName + "\"");
  }
  const int64_t count = countElements(shape);
  const size_t itemSize = c10::elementSize(*dtype);
  // A division, because the product could overflow.
  if (bytes.size % itemSize != 0 || bytes.size / itemSize != static_cast<size_t>(count)) {
    throw BridgeError("ERR_SHAPE", "data has " + std::to_string(bytes.size) + " bytes, but " +
                                       std::to_string(count) + " elements of " + dtypeName +
                                       " need " + std::to_string(itemSize) + " each");
  }
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(*dtype));
  if (bytes.size > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.data, bytes.size);
  return wrapTensor(environment, std::move(tensor));
}

Napi::Value toBytes(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = tensorOf(Environment::of(info.Env()), info[0], "tensor");
  const at::Tensor dense = tensor.is_sparse() ? tensor.detach().to_dense() : tensor.detach();
  const at::Tensor plain = dense.to(at::kCPU).resolve_conj().resolve_neg().contiguous();
  const size_t size = plain.nbytes();
  Napi::ArrayBuffer buffer = Napi::ArrayBuffer::New(info.Env(), size);
  if (size > 0) std::memcpy(buffer.Data(), plain.const_data_ptr(), size);
  return buffer;
}

const at::Tensor& firstTensor(const Napi::CallbackInfo& info) {
  return tensorOf(Environment::of(info.Env()), info[0], "tensor");
}

Napi::Value shape(const Napi::CallbackInfo& info) {
  return makeIntegers(info.Env(), firstTensor(info).sizes());
}

Napi::Value strides(const Napi::CallbackInfo& info) {
  return makeIntegers(info.Env(), firstTensor(info).strides());
}

Napi::Value numel(const Napi::CallbackInfo& info) {
  return makeInteger(info.Env(), firstTensor(info).numel());
}

Napi::Value dtype(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), nameOf(firstTensor(info).scalar_type()));
}

Napi::Value device(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), firstTensor(info).device().str());
}

Napi::Value isContiguous(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), firstTensor(info).is_contiguous());
}

Napi::Value isSparse(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), firstTensor(info).is_sparse());
}

Napi::Value sameStorage(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  return Napi::Boolean::New(
      info.Env(),
      tensorOf(environment, info[0], "a").is_alias_of(tensorOf(environment, info[1], "b")));
}

Napi::Value requiresGrad(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), firstTensor(info).requires_grad());
}

Napi::Value setRequiresGrad(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = tensorOf(Environment::of(info.Env()), info[0], "tensor");
  const bool value = boolOf(info[1], "requiresGrad");
  if (value && !at::isFloatingType(tensor.scalar_type())) {
    throw BridgeError("ERR_DTYPE", "only floating tensors can require gradients, got " +
                                       nameOf(tensor.scalar_type()));
  }
  if (!value && !tensor.is_leaf()) {
    throw BridgeError("ERR_ARGUMENT",
                      "requiresGrad can be switched off on leaf tensors only; use detach()");
  }
  tensor.requires_grad_(value);
  return info.Env().Undefined();
}

Napi::Value isLeaf(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), firstTensor(info).is_leaf());
}

Napi::Value gradientOf(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const at::Tensor& tensor = tensorOf(environment, info[0], "tensor");
  at::Tensor gradient = tensor.is_leaf() || tensor.retains_grad() ? tensor.grad() : at::Tensor();
  if (!gradient.defined()) return info.Env().Null();
  TensorSlot& slot = *slotOf(environment, info[0]);
  if (!slot.gradientObject.IsEmpty() && slot.gradientImpl == gradient.unsafeGetTensorImpl()) {
    const Napi::Object known = slot.gradientObject.Value();
    const TensorSlot* knownSlot = known.IsEmpty() ? nullptr : slotOf(environment, known);
    if (knownSlot != nullptr && !knownSlot->isFree()) return known;
  }
  slot.gradientImpl = gradient.unsafeGetTensorImpl();
  const Napi::Value object = wrapTensor(environment, std::move(gradient));
  slot.gradientObject = Napi::Weak(object.As<Napi::Object>());
  return object;
}

Napi::Value setGradient(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const at::Tensor& tensor = tensorOf(environment, info[0], "tensor");
  if (isNullish(info[1])) {
    tensor.mutable_grad().reset();
    return info.Env().Undefined();
  }
  const at::Tensor& gradient = tensorOf(environment, info[1], "grad");
  if (!gradient.sizes().equals(tensor.sizes())) {
    throw BridgeError("ERR_SHAPE", "grad must have the tensor's shape");
  }
  if (gradient.scalar_type() != tensor.scalar_type()) {
    throw BridgeError("ERR_DTYPE", "grad must have the tensor's dtype " +
                                       nameOf(tensor.scalar_type()) + ", got " +
                                       nameOf(gradient.scalar_type()));
  }
  if (gradient.device() != tensor.device()) {
    throw BridgeError("ERR_DEVICE", "grad must be on the tensor's device " + tensor.device().str());
  }
  tensor.mutable_grad() = gradient;
  return info.Env().Undefined();
}

Napi::Value gradFunctionName(const Napi::CallbackInfo& info) {
  const at::Tensor& tensor = firstTensor(info);
  const auto& function = tensor.grad_fn();
  return function ? Napi::String::New(info.Env(), function->name()) : info.Env().Null();
}

Napi::Value setData(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const at::Tensor& tensor = tensorOf(environment, info[0], "tensor");
  tensor.set_data(tensorOf(environment, info[1], "source").detach());
  updateStorage(environment, *slotOf(environment, info[0]));
  return info.Env().Undefined();
}

Napi::Value freeSlot(const Napi::CallbackInfo& info) {
  releaseTensor(Environment::of(info.Env()), integerOf(info[0], "slot"));
  return info.Env().Undefined();
}

}  // namespace

void exportTensorFunctions(Napi::Object exports) {
  exportFunction<fromBytes>(exports, "fromBytes");
  exportFunction<toBytes>(exports, "toBytes");
  exportFunction<shape>(exports, "shape");
  exportFunction<strides>(exports, "strides");
  exportFunction<numel>(exports, "numel");
  exportFunction<dtype>(exports, "dtype");
  exportFunction<device>(exports, "device");
  exportFunction<isContiguous>(exports, "isContiguous");
  exportFunction<isSparse>(exports, "isSparse");
  exportFunction<sameStorage>(exports, "sameStorage");
  exportFunction<requiresGrad>(exports, "requiresGrad");
  exportFunction<setRequiresGrad>(exports, "setRequiresGrad");
  exportFunction<isLeaf>(exports, "isLeaf");
  exportFunction<gradientOf>(exports, "grad");
  exportFunction<setGradient>(exports, "setGrad");
  exportFunction<gradFunctionName>(exports, "gradFunctionName");
  exportFunction<setData>(exports, "setData");
  exportFunction<freeSlot>(exports, "freeSlot");
}

}  // namespace torchformer::bind
