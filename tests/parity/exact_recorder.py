"""Records cases for all float types at once: what goes in is a number of every one of them.

Inputs, parameters and given gradients are drawn and rounded to bfloat16, so float64, float32 and
bfloat16 start from the very same numbers and one float64 result is what all three must come to.
Before it is written, the reference itself runs in the other two types: in float32 it must lie
within a tenth of the tolerances that torchformer is held to; in bfloat16 within half of the limit
that is written down for torchformer.

A case must also deserve its limit: where a ReLU's input is so close to zero that rounding turns its
sign, whole gradients come and go. So the exact run is repeated with noise of one bfloat16 step on
every parameter, and the case is drawn anew until its results stay within the limit.

Position tables are no input: each type has its own rounding of the exact table.
"""

import torch

import reference as r
from recorder import Draw

OUTPUT, GRADIENT = 1e-5, 1e-4
NARROW = torch.bfloat16
# Neighbouring bfloat16 numbers lie 2^-8 to 2^-7 of themselves apart. Along the longest path of a part
# about ten results are rounded, to either side by at most half of that: 4 * 2^-8 is allowed.
# Independent errors add up like the root of their number: a layer is three parts, a model of two
# layers twelve.
PART, LAYER, MODEL = 2**-6, 2**-5, 2**-4


def bfloat16_limit(module):
    if module in ("Transformer", "makeModel"):
        return MODEL
    return LAYER if module.endswith("Layer") else PART


def narrow(value):
    """Rounded to bfloat16, kept in its own type."""
    return value.to(NARROW).to(value.dtype) if value.is_floating_point() else value


def cast(module, dtype):
    module = module.to(dtype)
    for part in module.modules():
        if isinstance(part, r.PositionalEncoding):
            part.pe = r.position_table(*part.pe.shape[1:], torch.float64).to(dtype)[None]
        elif hasattr(part, "make_tables_"):
            part.make_tables_(dtype)
    return module


class Trial:
    """One draw of a case: its module, its inputs, and what comes out in any type."""

    def __init__(self, seed, title, build, inputs, module, arguments, call, upstream):
        self.draw = Draw(len(title) * 1009 + sum(map(ord, title)) + seed, torch.float64)
        self.inputs = {name: narrow(value) for name, value in inputs(self.draw).items()}
        self.arguments = list(self.inputs) if arguments is None else arguments
        self.call = call or (lambda model, *given: {"output": model(*given)})
        self.upstream = upstream
        self.given = {}
        self.part = build()
        if self.part is not None:
            self.part = self.part.to(torch.float64).eval()
            Draw(sum(map(ord, module)) + seed, torch.float64).parameters_(self.part)
            self.change_parameters_(narrow)

    def change_parameters_(self, change):
        with torch.no_grad():
            for parameter in self.part.parameters():
                parameter.copy_(change(parameter))

    def run(self, dtype):
        """Outputs and gradients."""
        own = {
            name: value.to(dtype).requires_grad_() if value.is_floating_point() else value
            for name, value in self.inputs.items()
        }
        part = None if self.part is None else cast(self.part, dtype)
        outputs = self.call(part, *(None if name is None else own[name] for name in self.arguments))
        for name in list(outputs) if self.upstream is None else self.upstream:
            if name not in self.given:
                self.given[name] = narrow(self.draw.normal(*outputs[name].shape))
        sources = {f"input/{name}": value for name, value in own.items() if value.requires_grad}
        if part is not None:
            sources |= {f"parameter/{name}": value for name, value in part.named_parameters()}
        found = torch.autograd.grad(
            [outputs[name] for name in self.given],
            list(sources.values()),
            [value.to(outputs[name].dtype) for name, value in self.given.items()],
            allow_unused=True,
        )
        gradients = {
            name: torch.zeros_like(source) if gradient is None else gradient
            for (name, source), gradient in zip(sources.items(), found)
        }
        return {name: value.detach() for name, value in outputs.items()}, gradients

    def worst_with_noise(self, exact):
        """The largest difference that a bfloat16 step on every parameter makes."""
        if self.part is None:
            return 0.0

        def noisy(value):
            noise = torch.rand(value.shape, generator=self.draw.generator, dtype=torch.float64)
            return value * (1 + 2**-8 * (2 * noise - 1))

        worst = 0.0
        cast(self.part, torch.float64)
        saved = {name: value.clone() for name, value in self.part.state_dict().items()}
        for _ in range(4):
            self.change_parameters_(noisy)
            worst = max(worst, *distance(self.run(torch.float64), exact).values())
            self.part.load_state_dict(saved)
        return worst


class ExactRecorder:
    """attempts: the draw of each case, where it is known. Which one deserves its limit may depend
    on how a CPU rounds in bfloat16, and a check must make the committed ones again."""

    def __init__(self, attempts=None):
        self.attempts = attempts
        self.tensors = {}
        self.cases = []
        self.states = {}

    def add(
        self,
        title,
        build,
        inputs,
        *,
        module=None,
        options=None,
        arguments=None,
        call=None,
        upstream=None,
        dtypes=("float32", "float64", "bfloat16"),
    ):
        """The arguments of Recorder.add. The module runs in evaluation mode, so `options` may leave
        its dropout to the post's default."""
        limit = bfloat16_limit(module)
        known = None if self.attempts is None else self.attempts[len(self.cases)]
        for attempt in range(50) if known is None else (known,):
            trial = Trial(7919 * attempt, title, build, inputs, module, arguments, call, upstream)
            exact = trial.run(torch.float64)
            in_bfloat16 = distance(trial.run(NARROW), exact) | {"limit": limit}
            if known is not None:
                break
            off = max(in_bfloat16["output"], in_bfloat16["gradient"])
            if off <= 0.5 * limit and trial.worst_with_noise(exact) <= limit:
                break
        else:
            raise ValueError(f"{module}, {title}: too sensitive for bfloat16")
        in_float32 = distance(trial.run(torch.float32), exact)
        if in_float32["output"] > OUTPUT / 10 or in_float32["gradient"] > GRADIENT / 10:
            raise ValueError(f"{module}, {title}: float32 is off by {in_float32}")

        key = f"case{len(self.cases)}"
        outputs, gradients = exact
        groups = {
            "input": trial.inputs,
            "output": outputs,
            "upstream": trial.given,
            "gradient": gradients,
        }
        for group, tensors in groups.items():
            for name, tensor in tensors.items():
                if group in ("input", "upstream") and tensor.is_floating_point():
                    tensor = tensor.to(NARROW)
                self.tensors[f"{key}/{group}/{name}"] = tensor
        self.cases.append(
            {
                "key": key,
                "title": title,
                "module": module,
                "options": options or {},
                "dtypes": list(dtypes),
                "attempt": attempt,
                "state": self.state((module, str(options), attempt), trial.part),
                "arguments": trial.arguments,
                "outputs": list(outputs),
                "upstream": list(trial.given),
                "inputGradients": [
                    name for name, value in trial.inputs.items() if value.is_floating_point()
                ],
                "bfloat16": in_bfloat16,
            }
        )

    def state(self, described, part):
        """One set of parameters for each module, options and draw, shared by its cases."""
        if part is None:
            return None
        if described not in self.states:
            self.states[described] = f"state{len(self.states)}"
            parameters = dict(part.named_parameters(remove_duplicate=False))
            for name, tensor in cast(part, torch.float64).state_dict().items():
                kept = tensor.to(NARROW) if name in parameters else tensor
                self.tensors[f"{self.states[described]}/{name}"] = kept.clone()
        return self.states[described]


def distance(found, exact):
    """Largest differences: of outputs, by the larger of 1 and the largest output; of gradients, by
    the largest gradient of the module."""

    def largest(tensor):
        return tensor.abs().max().item()

    (outputs, gradients), (exact_outputs, exact_gradients) = found, exact
    scale = max(largest(gradient) for gradient in exact_gradients.values()) or 1.0
    return {
        "output": max(
            largest(outputs[name].double() - value) / max(1.0, largest(value))
            for name, value in exact_outputs.items()
        ),
        "gradient": max(
            largest(gradients[name].double() - value) / scale
            for name, value in exact_gradients.items()
        ),
    }
