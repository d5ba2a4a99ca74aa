"""What holds for every op: gradients, grad modes, devices, registration."""
import os
import shutil
import subprocess
import sys
import tempfile

import torch

from support import LIBRARY, check, ops, rand
from feed_forward_checks import network


def calls(dtype=torch.float32, grad=True):
    """Every op with good arguments, as a function without arguments that gives the first output."""
    x = rand(2, 3, 8, dtype=dtype, grad=grad)
    a = rand(8, dtype=dtype, grad=grad)
    n = [t.detach().requires_grad_(grad) for t in network((2, 3), dtype=dtype)]
    classes = rand(4, 8, dtype=dtype, grad=grad)
    for suffix in ("", "_reference"):
        yield "layer_norm" + suffix, lambda f=getattr(ops, "layer_norm" + suffix): f(x, a, a)
        yield "layer_norm sample" + suffix, lambda f=getattr(ops, "layer_norm" + suffix): f(x, a, a, sample_std=True, eps_outside=True)
        yield "rms_norm" + suffix, lambda f=getattr(ops, "rms_norm" + suffix): f(x, a)
        yield "attention" + suffix, lambda f=getattr(ops, "attention" + suffix): f(x, x, x, None, 0.2, need_weights=True)[0]
        yield "feed_forward" + suffix, lambda f=getattr(ops, "feed_forward" + suffix): f(*n, 0.2)
        yield "feed_forward gelu" + suffix, lambda f=getattr(ops, "feed_forward" + suffix): f(*n, 0.2, activation="gelu")
        yield "feed_forward swiglu" + suffix, lambda f=getattr(ops, "feed_forward" + suffix): f(
            *n, 0.2, activation="swiglu", w_3=n[1], b_3=n[2])
        rows = x.detach().reshape(6, 8).requires_grad_(grad)
        offsets = torch.tensor([0, 2, 6])
        yield "packed_attention" + suffix, lambda f=getattr(ops, "packed_attention" + suffix): f(
            rows, rows, rows, offsets, offsets, 2, True, 0.2)
        yield "embed" + suffix, lambda f=getattr(ops, "embed" + suffix): f(
            classes, torch.tensor([[0, 3], [1, 3]]), 2.0, x[0, :2], torch.tensor([[0, 1], [0, 1]]), 0.2)
        yield "linear" + suffix, lambda f=getattr(ops, "linear" + suffix): f(x, classes, None)
        yield "linear_cross_entropy" + suffix, lambda f=getattr(ops, "linear_cross_entropy" + suffix): f(
            rows, classes, None, torch.tensor([0, 1, 2, 3, 1, 0]), 3, 0.1)[0]
    for name in ("add_norm", "add_norm_reference"):
        yield name, lambda f=getattr(ops, name): f(x, x, a, a, 0.5)[1]
    for name in ("dropout", "dropout_reference"):
        yield name, lambda f=getattr(ops, name): f(x, 0.5)
        yield f"{name} with a residual", lambda f=getattr(ops, name): f(x, 0.5, residual=x)


@check
def every_op_has_a_gradient_of_its_own_or_is_composite():
    names = [s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("torchformer::")]
    assert len(names) == 24, names
    for name in names:
        own = torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd")
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        assert own or composite, name
    for name, call in calls():
        assert call().grad_fn is not None, name


@check
def without_gradients_nothing_is_recorded_and_the_bits_are_the_same():
    for (name, call), (_, plain) in zip(calls(), calls(grad=False)):
        torch.manual_seed(1)
        recorded = call()
        for guard in (torch.no_grad, torch.inference_mode, torch._C._AutoDispatchBelowAutograd):
            torch.manual_seed(1)
            with guard():
                output = call()
            assert not output.requires_grad and output.grad_fn is None, name
            assert torch.equal(output, recorded.detach()), name
        torch.manual_seed(1)
        output = plain()
        assert output.grad_fn is None and torch.equal(output, recorded.detach()), name


@check
def inference_tensors_are_accepted():
    with torch.inference_mode():
        for name, call in calls(grad=False):
            assert torch.isfinite(call()).all(), name


@check
def shapes_are_known_on_the_meta_device():
    m = dict(device="meta")
    x = torch.empty(2, 3, 4, 8, **m)
    assert ops.layer_norm(x, torch.empty(8, **m), torch.empty(8, **m)).shape == x.shape
    assert ops.rms_norm(x, torch.empty(8, **m)).shape == x.shape
    output, weights = ops.attention(x, x, x, torch.ones(1, 1, 4, 4, dtype=torch.bool, **m), 0.1, need_weights=True)
    assert output.shape == x.shape and weights.shape == (2, 3, 4, 4)
    assert ops.feed_forward(x, torch.empty(9, 8, **m), None, torch.empty(5, 9, **m), None, 0.1).shape == (2, 3, 4, 5)
    w = torch.empty(9, 8, **m)
    for options in (dict(activation="gelu"), dict(activation="swiglu", w_3=w)):
        assert ops.feed_forward(x, w, None, torch.empty(5, 9, **m), None, 0.1, **options).shape == (2, 3, 4, 5)
    assert ops.dropout(x, 0.1).shape == x.shape


@check
def backward_frees_and_a_second_backward_says_so():
    for name, call in calls():
        loss = call().sum()
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            assert "second time" in str(error), (name, error)
        else:
            raise AssertionError(name)


@check
def a_forward_mode_tangent_is_an_error_not_lost():
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(2, 4), torch.ones(2, 4))
        for function in (lambda: ops.layer_norm(x, torch.ones(4), torch.zeros(4)), lambda: ops.rms_norm(x, torch.ones(4)),
                         lambda: ops.dropout(x, 0.5)):
            try:
                function()
            except RuntimeError as error:
                assert "jvp is not implemented" in str(error), error
            else:
                raise AssertionError("tangent lost in silence")


@check
def the_default_generator_is_the_one_that_manual_seed_sets():
    for name, call in calls():
        torch.manual_seed(5)
        first = call()
        torch.manual_seed(5)
        assert torch.equal(first, call()), name


@check
def absurd_sizes_are_an_error():
    one = torch.ones(1)
    huge = one.expand(2**31, 2**31, 1, 1)
    for call in (lambda: ops.attention(huge, huge, huge), lambda: ops.layer_norm(huge, one, one), lambda: ops.rms_norm(huge, one),
                 lambda: ops.feed_forward(huge, one[None], None, one[None], None),
                 lambda: ops.dropout(huge, 0.5)):
        try:
            call()
        except RuntimeError:
            continue
        raise AssertionError("accepted")
    none = one.expand(2**40, 2**20, 1, 1)[:, :, :0]
    output, _ = ops.attention(none, none, none)
    assert output.shape == none.shape


@check
def a_second_copy_of_the_library_says_which_came_first():
    second = os.path.join(tempfile.mkdtemp(), "second.so")
    shutil.copy(LIBRARY, second)
    program = (
        "import ctypes, sys, torch\n"
        "torch.ops.load_library(sys.argv[1])\n"
        "torch.ops.load_library(sys.argv[1])\n"
        "print('the same file again does nothing', flush=True)\n"
        "ctypes.CDLL(sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, LIBRARY, second], capture_output=True, text=True)
    # This library registers from a static initializer, so the error ends the process; the addon
    # calls the same function where it can catch.
    assert "does nothing" in done.stdout, done.stderr
    assert done.returncode != 0 and "[ERR_NATIVE_LOAD]" in done.stderr, done.stderr
    assert LIBRARY in done.stderr and second in done.stderr, done.stderr
    shutil.rmtree(os.path.dirname(second))


@check
def add_norm_can_be_differentiated_twice():
    for options in (dict(), dict(sample_std=True, eps_outside=True), dict(centred=False)):
        inputs = [rand(3, 5), rand(3, 5, seed=4), rand(5)] + ([rand(5, seed=9)] if options.get("centred", True) else [])

        def both(*t):
            generator = torch.Generator().manual_seed(5)
            t = list(t) + [None] * (4 - len(t))
            return ops.add_norm(*t, 0.3, 1e-2, generator=generator, **options)

        assert torch.autograd.gradcheck(both, inputs)
        assert torch.autograd.gradgradcheck(both, inputs)
        assert torch.autograd.gradgradcheck(lambda *t: both(*t)[0], inputs)
