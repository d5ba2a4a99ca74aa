"""Runs a module on drawn inputs and keeps what went in and what came out, in both types."""

import math

import torch

import reference as r

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def cast(module, dtype):
    """module.to(dtype) with position tables exact in that type, not float32 values made wider."""
    module = module.to(DTYPES[dtype])
    for part in module.modules():
        if isinstance(part, r.PositionalEncoding):
            _, max_len, d_model = part.pe.shape
            part.pe = r.position_table(max_len, d_model, DTYPES[dtype])[None]
    return module


class Draw:
    """A seeded source of values: drawn in float64, so that both types get the same numbers."""

    def __init__(self, seed, dtype):
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype

    def normal(self, *shape):
        drawn = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        return drawn.to(self.dtype)

    def ids(self, vocab_size, *shape):
        """Without id 0, the padding."""
        return torch.randint(1, vocab_size, shape, generator=self.generator)

    def parameters_(self, module):
        """Fills a module with values that no part can ignore: gains off 1, biases off 0."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                drawn = self.normal(*parameter.shape)
                if parameter.dim() > 1:
                    parameter.copy_(drawn / math.sqrt(parameter.size(-1)))
                elif name.endswith(("a_2", "k", "norm.weight")) or name == "weight":
                    parameter.copy_(1 + 0.3 * drawn)
                else:
                    parameter.copy_(0.3 * drawn)
        return module


class Recorder:
    def __init__(self):
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
        dtypes=("float32", "float64"),
    ):
        """Records one case for each dtype.

        build(): a new module, or None for a function.
        inputs(draw): the named inputs; floating ones get a gradient.
        arguments: names of the inputs in call order, None for an absent mask (default: all inputs).
        call(module, *values): a dict of outputs (default: module(*values) under the name "output").
        upstream: names of the outputs that get a drawn gradient (default: every output).
        """
        for dtype in dtypes:
            key = f"case{len(self.cases)}"
            draw = Draw(seed=len(title) * 1009 + sum(map(ord, title)), dtype=DTYPES[dtype])
            values = {
                name: value.detach().requires_grad_(value.is_floating_point())
                for name, value in inputs(draw).items()
            }
            order = list(values) if arguments is None else arguments
            built, state = self.state(module, options or {}, dtype, build)
            run = call or (lambda model, *given: {"output": model(*given)})
            outputs = run(built, *(None if name is None else values[name] for name in order))

            names = list(outputs) if upstream is None else upstream
            gradients = {name: draw.normal(*outputs[name].shape) for name in names}
            sources = {
                f"input/{name}": value for name, value in values.items() if value.requires_grad
            }
            if built is not None:
                built_parameters = built.named_parameters()
                sources |= {
                    f"parameter/{name}": parameter
                    for name, parameter in built_parameters
                    if parameter.requires_grad
                }
            found = torch.autograd.grad(
                [outputs[name] for name in names],
                list(sources.values()),
                list(gradients.values()),
                allow_unused=True,
            )
            for group, tensors in {
                "input": values,
                "output": outputs,
                "upstream": gradients,
                "gradient": {
                    name: torch.zeros_like(source) if gradient is None else gradient
                    for (name, source), gradient in zip(sources.items(), found)
                },
            }.items():
                for name, tensor in tensors.items():
                    self.tensors[f"{key}/{group}/{name}"] = tensor
            self.cases.append(
                {
                    "key": key,
                    "title": title,
                    "module": module,
                    "options": options or {},
                    "dtype": dtype,
                    "state": state,
                    "arguments": order,
                    "outputs": list(outputs),
                    "upstream": names,
                    "inputGradients": [
                        name for name, value in values.items() if value.requires_grad
                    ],
                }
            )

    def state(self, module, options, dtype, build):
        """One set of drawn parameters for each module, options and dtype, shared by its cases."""
        built = build()
        if built is None:
            return None, None
        built = cast(built, dtype)
        Draw(seed=sum(map(ord, module)), dtype=DTYPES[dtype]).parameters_(built)
        described = (module, str(options), dtype)
        if described not in self.states:
            self.states[described] = f"state{len(self.states)}"
            for name, tensor in built.state_dict().items():
                self.tensors[f"{self.states[described]}/{name}"] = tensor.clone()
        return built, self.states[described]
