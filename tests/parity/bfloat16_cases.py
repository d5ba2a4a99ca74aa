"""The parts of seed 001 once more, in bfloat16: the first case of each, and some with masks."""

import model_cases
import module_cases
from exact_recorder import ExactRecorder

ALSO = {
    ("LayerNorm", "gives a row of equal values its offset and a finite gradient"),
    ("attention", "mask [B, Sq, Sk], each sentence its own"),
    ("attention", "a sentence with nothing to attend gets uniform weights"),
    ("MultiHeadedAttention", "mask [B, Sq, Sk], padding and causal"),
    ("EncoderLayer", "a sentence of padding only"),
    ("DecoderLayer", "padded source, padded and causal target"),
    ("Generator", "log-probabilities of logits whose exponentials overflow float32"),
}
# Seed 000's norm has its own cases; the stacks are in the whole model.
ELSEWHERE = ("SampleLayerNorm", "Encoder", "Decoder")


class Chosen(ExactRecorder):
    """Records the first case of each module and those of ALSO."""

    def __init__(self, attempts=None):
        super().__init__(attempts)
        self.seen = set(ELSEWHERE)

    def add(self, title, build, inputs, *, module, **more):
        if module not in self.seen or (module, title) in ALSO:
            self.seen.add(module)
            more["dtypes"] = ("bfloat16",)
            super().add(title, build, inputs, module=module, **more)


def record(recorder):
    module_cases.record(recorder)
    model_cases.record(recorder)
