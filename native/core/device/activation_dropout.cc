#include "core/device/activation_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/silu.h>

#include "core/device/device_op.h"
#include "core/device/dropout.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

/// The result is undefined where `main` is h.
using HiddenSignature = at::Tensor(const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                                   const OptionalTensor&, int64_t, double, int64_t,
                                   const OptionalTensor&);

const DeviceOp<HiddenSignature>& hiddenOp() {
  static const DeviceOp<HiddenSignature> op("activation_dropout_");
  return op;
}

at::Tensor byPlainOps(Activation activation, const HiddenRows& rows, double p, const Seed& seed) {
  const auto& main = rows.main;
  if (rows.bias.defined()) main.add_(rows.bias);
  if (rows.gateBias.defined()) rows.gate.add_(rows.gateBias);
  if (activation == Activation::relu) {
    main.relu_();
    // Not a product with the mask, because dropped elements may be infinite.
    if (p > 0.0) main.masked_fill_(keptMask(main, p, seed).logical_not_(), 0.0);
    return main;
  }
  if (p > 0.0) main.masked_fill_(keptMask(main, p, seed).logical_not_(), closedValue);
  return activation == Activation::swiglu ? at::silu(main).mul_(rows.gate)
                                          : activate(activation, main, rows.gate);
}

at::Tensor activateAndDropCpu(const at::Tensor& main, const OptionalTensor& bias,
                              const OptionalTensor& gate, const OptionalTensor& gateBias,
                              int64_t activationNumber, double p, int64_t seed,
                              const OptionalTensor& slot) {
  const auto activation = static_cast<Activation>(activationNumber);
  const auto h = byPlainOps(activation, {main, orNone(gate), orNone(bias), orNone(gateBias)}, p,
                            {seed, orNone(slot)});
  return activation == Activation::relu ? at::Tensor() : h;
}

at::Tensor activateAndDropMeta(const at::Tensor& main, const OptionalTensor&, const OptionalTensor&,
                               const OptionalTensor&, int64_t activation, double, int64_t,
                               const OptionalTensor&) {
  const bool isRelu = static_cast<Activation>(activation) == Activation::relu;
  return isRelu ? at::Tensor() : at::empty_like(main);
}

}  // namespace

bool addsBiases(const at::Tensor& input) { return !input.is_cpu() && hiddenOp().isFor(input); }

at::Tensor activateAndDrop(Activation activation, const HiddenRows& rows, double p,
                           const Seed& seed) {
  if (!hiddenOp().isFor(rows.main)) return byPlainOps(activation, rows, p, seed);
  const auto h =
      hiddenOp()(rows.main, optional(rows.bias), optional(rows.gate), optional(rows.gateBias),
                 static_cast<int64_t>(activation), p, seed.number, seed.optionalSlot());
  return h.defined() ? h : rows.main;
}

void defineActivationDropoutDeviceOp(torch::Library& library) {
  defineDeviceOp(library,
                 "activation_dropout_(Tensor(a!) main, Tensor? bias, Tensor(b!)? gate, "
                 "Tensor? gate_bias, int activation, float p, int seed, Tensor? slot) -> Tensor",
                 TORCH_FN(activateAndDropCpu), TORCH_FN(activateAndDropMeta));
}

}  // namespace torchformer::core
