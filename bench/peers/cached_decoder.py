"""The model of seed 001 as someone who knows PyTorch decodes with it: the keys and values of earlier target
positions and of the source are kept, only the last position is computed, projections of one input are
joined, and finished sentences leave the batch.

Shapes: B sentences, K hypotheses of each (1 in greedy search), S source tokens, D = d_model, H heads.
"""

import math

import torch
from torch.nn import functional


class Norm:
    def __init__(self, state, name):
        self.gain, self.offset = state[name + ".a_2"], state[name + ".b_2"]

    def __call__(self, x):
        return functional.layer_norm(x, self.gain.shape, self.gain, self.offset, 1e-6)


class Linear:
    """One linear layer, or several of one input as one."""

    def __init__(self, state, *names):
        self.weight = torch.cat([state[name + ".weight"] for name in names])
        self.bias = torch.cat([state[name + ".bias"] for name in names])

    def __call__(self, x):
        return functional.linear(x, self.weight, self.bias)


class FeedForward:
    def __init__(self, state, name):
        self.first, self.second = Linear(state, name + ".w_1"), Linear(state, name + ".w_2")

    def __call__(self, x):
        return self.second(self.first(x).relu_())


def attention_projections(state, name, groups):
    """The projections of queries, keys, values and output, joined as `groups` says."""
    return [Linear(state, *(f"{name}.linears.{part}" for part in group)) for group in groups]


def split(x, heads):
    """[B, T, D] -> [B, H, T, D/H]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join(x):
    """[B, H, T, D/H] -> [B, T, D]"""
    return x.transpose(1, 2).flatten(2)


class EncoderLayer:
    def __init__(self, state, name, heads):
        self.heads = heads
        self.norms = [Norm(state, f"{name}.sublayers.{index}.norm") for index in range(2)]
        self.qkv, self.out = attention_projections(
            state, name + ".self_attn", [(0, 1, 2), (3,)]
        )
        self.feed_forward = FeedForward(state, name + ".feed_forward")

    def __call__(self, x, mask):
        q, k, v = (split(part, self.heads) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        heads = functional.scaled_dot_product_attention(q, k, v, mask)
        x = x + self.out(join(heads))
        return x + self.feed_forward(self.norms[1](x))


class DecoderLayer:
    def __init__(self, state, name, heads):
        self.heads = heads
        self.norms = [Norm(state, f"{name}.sublayers.{index}.norm") for index in range(3)]
        self.qkv, self.out = attention_projections(
            state, name + ".self_attn", [(0, 1, 2), (3,)]
        )
        self.source_q, self.source_kv, self.source_out = attention_projections(
            state, name + ".src_attn", [(0,), (1, 2), (3,)]
        )
        self.feed_forward = FeedForward(state, name + ".feed_forward")

    def start(self, memory, rows, length):
        """memory [B, S, D]: the keys and values of the source, and room for those of the target."""
        k, v = (split(part, self.heads) for part in self.source_kv(memory).chunk(2, -1))
        self.source_keys, self.source_values = k.contiguous(), v.contiguous()
        shape = (rows, self.heads, length, k.size(-1))
        self.keys, self.values = memory.new_empty(shape), memory.new_empty(shape)

    def __call__(self, x, position, mask):
        """x [B * K, 1, D] at `position`, mask [B, 1, 1, S] or None"""
        q, k, v = (split(part, self.heads) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        self.keys[:, :, position] = k[:, :, 0]
        self.values[:, :, position] = v[:, :, 0]
        end = position + 1
        heads = functional.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end]
        )
        x = x + self.out(join(heads))
        # The hypotheses of a sentence share its keys: they are queries of one attention.
        q = self.source_q(self.norms[1](x)).view(len(self.source_keys), -1, x.size(-1))
        q = split(q, self.heads)
        heads = functional.scaled_dot_product_attention(
            q, self.source_keys, self.source_values, mask
        )
        x = x + self.source_out(join(heads).view_as(x))
        return x + self.feed_forward(self.norms[2](x))

    def select_rows(self, rows, length):
        self.keys, self.values = (selected(cache, rows, length) for cache in (self.keys, self.values))

    def select_sentences(self, sentences):
        self.source_keys = self.source_keys[sentences]
        self.source_values = self.source_values[sentences]


def selected(cache, rows, length):
    """The rows of a cache [B, H, T, D/H]; only `length` positions of it are in use."""
    result = cache.new_empty((len(rows), *cache.shape[1:]))
    torch.index_select(cache[:, :, :length], 0, rows, out=result[:, :, :length])
    return result


class CachedDecoder:
    """A model with the weights of `state`; `start` begins a batch, `next` and `select` continue it."""

    def __init__(self, state, size, special_ids, dtype):
        state = {name: tensor.to(dtype) for name, tensor in state.items()}
        layers, heads = range(size["N"]), size["h"]
        self.pad, self.bos, self.eos = (special_ids[name] for name in ("pad", "bos", "eos"))
        self.scale = math.sqrt(size["dModel"])
        self.source, self.source_positions, self.target, self.target_positions = (
            state[f"{side}_embed.{part}"]
            for side in ("src", "tgt")
            for part in ("0.embedding.weight", "1.pe")
        )
        self.encoder = [EncoderLayer(state, f"encoder.layers.{i}", heads) for i in layers]
        self.decoder = [DecoderLayer(state, f"decoder.layers.{i}", heads) for i in layers]
        self.encoder_norm, self.decoder_norm = Norm(state, "encoder.norm"), Norm(state, "decoder.norm")
        self.generator = Linear(state, "generator.proj")

    def start(self, sources, beam, max_length):
        rows = [torch.tensor(source) for source in sources]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.pad)
        present = (ids != self.pad)[:, None, None]
        self.mask = None if present.all() else present
        x = functional.embedding(ids, self.source) * self.scale
        x = x + self.source_positions[:, : ids.size(1)]
        for layer in self.encoder:
            x = layer(x, self.mask)
        memory = self.encoder_norm(x)
        for layer in self.decoder:
            layer.start(memory, len(sources) * beam, max_length)
        self.position = 0

    def next(self, tokens):
        """tokens int64 [B * K]: the logits of the tokens after them, float32 [B * K, V]"""
        x = functional.embedding(tokens[:, None], self.target) * self.scale
        x = x + self.target_positions[:, self.position, None]
        for layer in self.decoder:
            x = layer(x, self.position, self.mask)
        self.position += 1
        return self.generator(self.decoder_norm(x)[:, 0]).float()

    def select_rows(self, rows):
        """Replaces hypothesis i by the previous hypothesis rows[i]."""
        for layer in self.decoder:
            layer.select_rows(rows, self.position)

    def select_sentences(self, sentences):
        """Drops the other sentences; the hypotheses have to be selected too."""
        for layer in self.decoder:
            layer.select_sentences(sentences)
        if self.mask is not None:
            self.mask = self.mask[sentences]
