"""Checks of torchformer::linear_cross_entropy."""
import torch

from support import check, ops


@check
def smoothing_over_a_large_vocabulary_keeps_its_digits():
    """All logits but one are far below it: their sum has more digits than a float32."""
    classes = 300_000
    logits = torch.full((classes, 1), -1000.3)
    logits[7] = 0
    one, target = torch.ones(1, 1), torch.tensor([7])
    for smoothing in (0.1, 1.0):
        expected = torch.nn.functional.cross_entropy(
            logits.double().t(), target, label_smoothing=smoothing).item()
        loss, losses, _ = ops.linear_cross_entropy(one, logits, None, target, -100, smoothing)
        for got in (loss.item(), losses.item()):
            assert abs(got / expected - 1) < 2e-5, (smoothing, got, expected)
