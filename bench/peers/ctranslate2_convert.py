"""Writes our weights as a CTranslate2 model; its tokens are the ids as text.

    python ctranslate2_convert.py --job job.json --output folder
"""

import argparse

import torch
from ctranslate2.specs import TransformerSpec

from shared import answer, load_file, read_job


def set_linear(spec, weight, bias):
    spec.weight, spec.bias = weight.numpy(), bias.numpy()


class Converter:
    def __init__(self, state):
        self.state = state

    def linear(self, spec, name):
        set_linear(spec, self.state[name + ".weight"], self.state[name + ".bias"])

    def joined(self, spec, name, parts):
        """Several linear layers of one input as one."""
        weight, bias = (
            torch.cat([self.state[f"{name}.linears.{part}.{kind}"] for part in parts])
            for kind in ("weight", "bias")
        )
        set_linear(spec, weight, bias)

    def norm(self, spec, name):
        spec.gamma, spec.beta = self.state[name + ".a_2"].numpy(), self.state[name + ".b_2"].numpy()

    def self_attention(self, spec, name):
        self.joined(spec.linear[0], name, (0, 1, 2))
        self.linear(spec.linear[1], name + ".linears.3")

    def source_attention(self, spec, name):
        self.linear(spec.linear[0], name + ".linears.0")
        self.joined(spec.linear[1], name, (1, 2))
        self.linear(spec.linear[2], name + ".linears.3")

    def feed_forward(self, spec, name):
        self.linear(spec.linear_0, name + ".w_1")
        self.linear(spec.linear_1, name + ".w_2")

    def embedding(self, spec, positions, name):
        spec.weight = self.state[name + ".0.embedding.weight"].numpy()
        positions.encodings = self.state[name + ".1.pe"][0].numpy()

    def encoder(self, spec):
        self.embedding(spec.embeddings[0], spec.position_encodings, "src_embed")
        for index, layer in enumerate(spec.layer):
            name = f"encoder.layers.{index}"
            self.norm(layer.self_attention.layer_norm, name + ".sublayers.0.norm")
            self.self_attention(layer.self_attention, name + ".self_attn")
            self.norm(layer.ffn.layer_norm, name + ".sublayers.1.norm")
            self.feed_forward(layer.ffn, name + ".feed_forward")
        self.norm(spec.layer_norm, "encoder.norm")

    def decoder(self, spec):
        self.embedding(spec.embeddings, spec.position_encodings, "tgt_embed")
        for index, layer in enumerate(spec.layer):
            name = f"decoder.layers.{index}"
            self.norm(layer.self_attention.layer_norm, name + ".sublayers.0.norm")
            self.self_attention(layer.self_attention, name + ".self_attn")
            self.norm(layer.attention.layer_norm, name + ".sublayers.1.norm")
            self.source_attention(layer.attention, name + ".src_attn")
            self.norm(layer.ffn.layer_norm, name + ".sublayers.2.norm")
            self.feed_forward(layer.ffn, name + ".feed_forward")
        self.norm(spec.layer_norm, "decoder.norm")
        self.linear(spec.projection, "generator.proj")


def convert(job, output):
    size = job["model"]
    # Pre-norm with final norms, ReLU, and embeddings scaled by sqrt(d) are its defaults.
    spec = TransformerSpec.from_config(size["N"], size["h"])
    converter = Converter(load_file(job["weights"]))
    converter.encoder(spec.encoder)
    converter.decoder(spec.decoder)
    tokens = [str(index) for index in range(size["vocabSize"])]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    bos, eos, pad = (str(job["specialIds"][name]) for name in ("bos", "eos", "pad"))
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.eos_token = eos
    # It needs a token for unknown ones, of which there are none.
    spec.config.unk_token = pad
    # Its own default is 1e-5.
    spec.config.layer_norm_epsilon = 1e-6
    spec.validate()
    spec.save(output)
    answer(folder=output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    convert(read_job(arguments.job), arguments.output)
