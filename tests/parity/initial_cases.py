"""What the classes of seeds 000 and 002 start from, after one manual seed."""

import torch

import reference_seed000 as seed000
import reference_seed002 as seed002

SEED = 31
KINDS = {
    "seed000.MultiHeadAttention": (seed000.MultiHeadAttention, {"d_model": 8, "num_heads": 2}),
    "seed000.FeedForward": (seed000.FeedForward, {"d_model": 8, "output_dim": 12}),
    "seed000.SubLayerConnection": (seed000.SubLayerConnection, {"d_model": 8}),
    "seed002.MultiHead": (seed002.MultiHead, {}),
    "seed002.PositionEmbedding": (seed002.PositionEmbedding, {}),
    "seed002.FullyConnectedOutput": (seed002.FullyConnectedOutput, {}),
}


def initial_states():
    """Options are empty where the post has sizes of its own; `dropouts` by the module's name."""
    modules, tensors = [], {}
    for name, (kind, options) in KINDS.items():
        torch.manual_seed(SEED)
        module = kind(**options)
        tensors |= {f"{name}/{key}": value for key, value in module.state_dict().items()}
        dropouts = {
            path: part.p
            for path, part in module.named_modules()
            if isinstance(part, torch.nn.Dropout)
        }
        modules.append(
            {
                "module": name,
                "options": options,
                "keys": list(module.state_dict()),
                "parameters": [key for key, _ in module.named_parameters()],
                "dropouts": dropouts,
            }
        )
    return {"seed": SEED, "modules": modules}, tensors
