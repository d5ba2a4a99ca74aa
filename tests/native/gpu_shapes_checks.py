"""What the ops do on a GPU, as far as it can be seen without one: on tensors without data, which claim
to be on a GPU, every op gives the right shapes and dtypes there, takes the kernels it should take, and
never asks for a number (which would wait for the GPU, and is an error here).

Backward passes need a real device: they are in tests/gpu and bench/gpu.
"""
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from support import check, ops

BF16 = torch.bfloat16


def on_gpu(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, device="cuda")


def calls():
    """Name, expected shape and dtype of the first output, the call."""
    rows, wide = (on_gpu(2, 3, 8) for _ in range(2))
    half = on_gpu(2, 3, 8, dtype=BF16)
    features = on_gpu(8)
    offsets = on_gpu(3, dtype=torch.int32)
    longest = {"longest_query": 4, "longest_key": 4}
    w_1, w_2 = on_gpu(16, 8), on_gpu(8, 16)
    mask = on_gpu(2, 1, 1, 5, dtype=torch.bool)
    for suffix in ("", "_reference"):
        op = lambda name, suffix=suffix: getattr(ops, name + suffix)
        yield "layer_norm", (2, 3, 8), torch.float32, lambda: op("layer_norm")(rows, features, features)
        yield "layer_norm sample", (2, 3, 8), BF16, lambda: op("layer_norm")(
            rows, features, features, 1e-6, sample_std=True, results="bfloat16")
        yield "rms_norm", (2, 3, 8), torch.float32, lambda: op("rms_norm")(rows, features)
        yield "add_norm", (2, 3, 8), torch.float32, lambda: op("add_norm")(
            half, wide, features, features, 0.3, results="bfloat16")
        yield "linear", (2, 3, 16), BF16, lambda: op("linear")(half, w_1, None, products="bfloat16_results")
        yield "linear own", (2, 3, 16), torch.float32, lambda: op("linear")(rows, w_1, on_gpu(16))
        for activation in ("relu", "gelu", "swiglu"):
            gate = {"w_3": on_gpu(16, 8)} if activation == "swiglu" else {}
            yield f"feed_forward {activation}", (2, 3, 8), BF16, lambda a=activation, g=gate: op("feed_forward")(
                half, w_1, on_gpu(16), w_2, features, 0.2, activation=a, products="bfloat16_results", **g)
    for dtype in (torch.float32, BF16):
        q, k = on_gpu(2, 4, 3, 64, dtype=dtype), on_gpu(2, 4, 5, 64, dtype=dtype)
        yield f"attention {dtype}", (2, 4, 3, 64), dtype, lambda q=q, k=k: ops.attention(q, k, k, mask, 0.1)
        yield f"attention weights {dtype}", (2, 4, 3, 64), dtype, lambda q=q, k=k: ops.attention(
            q, k, k, mask, 0.1, need_weights=True)
        odd = on_gpu(6, 10, dtype=dtype)
        yield f"packed {dtype}, heads 5 wide", (6, 10), dtype, lambda x=odd: ops.packed_attention(
            x, x, x, offsets, offsets, 2, False, 0.2, **longest)
        x = on_gpu(6, 128, dtype=dtype)
        for causal in (False, True):
            yield f"packed {dtype} {causal}", (6, 128), dtype, lambda x=x, c=causal: ops.packed_attention(
                x, x, x, offsets, offsets, 2, c, 0.2, **longest)
    yield "dropout", (2, 3, 8), torch.float32, lambda: ops.dropout(half, 0.3, residual=rows)
    ids, table = on_gpu(6, dtype=torch.int64), on_gpu(9, 8)
    for dtype in (torch.float32, BF16):
        vectors = on_gpu(6, 8, dtype=dtype)
        yield f"linear_cross_entropy {dtype}", (), torch.float32, lambda v=vectors: ops.linear_cross_entropy(
            v, table, on_gpu(9), ids, 0, 0.1, products="bfloat16_results")
    yield "embed", (6, 8), torch.float32, lambda: ops.embed(table, ids, 2.0, on_gpu(4, 8), ids, 0.1)


def registered_cuda_kernels():
    """Kernels that stand for those of native/cuda, which need a GPU: none of them may be reached."""
    library = torch.library.Library("torchformer_device", "IMPL")
    names = {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("torchformer_device::")}
    for name in names:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA"):
            library.impl(name.split("::")[1], unreachable, "CUDA")
    return library


def unreachable(*_):
    raise AssertionError("a kernel ran on a tensor without data")


@check
def ops_on_a_gpu_give_the_right_shapes_and_never_wait():
    library = registered_cuda_kernels()
    try:
        with FakeTensorMode(), torch.no_grad():
            for name, shape, dtype, call in calls():
                output = call()
                output = output[0] if isinstance(output, tuple) else output
                assert tuple(output.shape) == shape, f"{name}: {output.shape}"
                assert output.dtype == dtype, f"{name}: {output.dtype}"
                assert output.device.type == "cuda", name
    finally:
        library._destroy()


@check
def every_device_op_has_kernels_for_the_cpu_and_for_shapes():
    names = [s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("torchformer_device::")]
    assert len(names) >= 6, names
    # Seeds are the CPU's.
    for name in set(names) - {"torchformer_device::seed_slots", "torchformer_device::draw_seeds"}:
        for key in ("CPU", "Meta"):
            assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key), f"{name} {key}"


@check
def ops_on_meta_tensors_have_the_shapes_of_the_cpu():
    def outputs(device):
        x, a = torch.rand(2, 3, 8, device=device), torch.rand(8, device=device)
        rows, offsets = x.reshape(6, 8), torch.tensor([0, 2, 6])
        w_1, w_2 = torch.rand(16, 8, device=device), torch.rand(8, 16, device=device)
        heads = torch.rand(2, 4, 3, 8, device=device)
        classes, ids = torch.rand(9, 8, device=device), torch.tensor([1, 2, 3, 4, 5, 0], device=device)
        return [
            *ops.linear_cross_entropy(rows, classes, None, ids), ops.embed(classes, ids, 2.0, None, None, 0.1),
            ops.layer_norm(x, a, a), ops.layer_norm(x, a, a, sample_std=True, results="float16"),
            ops.rms_norm(x, a), *ops.add_norm(x, x, a, a, 0.1), ops.dropout(x, 0.3),
            *ops.attention(heads, heads, heads, None, 0.1, need_weights=True),
            ops.packed_attention(rows, rows, rows, offsets, offsets, 2, True, 0.1),
            ops.linear(x, w_1, None), ops.linear(x, w_1, None, products="bfloat16_results"),
            ops.feed_forward(x, w_1, None, w_2, None, 0.1),
            ops.feed_forward(x, w_1, None, w_2, None, 0.1, activation="swiglu", w_3=w_1),
        ]

    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for one, other in zip(outputs("cpu"), outputs("meta")):
                assert other.is_meta and one.shape == other.shape and one.dtype == other.dtype
