"""The Transformer of reference.py with the choices that other papers made, in PyTorch.

Written from the papers, never from the TypeScript. `make_model(sizes, **options)` takes the model of
seed 001 and exchanges parts; keys of the state dict are seed 001's wherever a part has a counterpart
there.

norm         'layer' (reference.py's), 'sample' (seed 000's: k, b), 'torch' (weight, bias, eps 1e-5), or
             'rms' (Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) * weight, eps 1e-6, no offset)
order        'pre': x + dropout(f(norm(x))); 'post', the paper's section 5.4: norm(x + dropout(f(x)))
final_norm   whether each stack ends with a norm; with 'post' the last sublayer already did
positions    'paired': the paper's section 3.5; 'perColumn': seed 002's exponent i/d in each column;
             'learned': a trained table `pe` in the place of the buffer; 'rotary' (Su et al. 2021): see
             `rotate`; 'none'
activation   'relu'; 'gelu' (Hendrycks and Gimpel 2016, with the error function); 'swiglu' (Shazeer
             2020): w_2(dropout(silu(w_1 x) * w_3 x))
tie          matrices that are one (paper, section 3.4): 'src-tgt', 'tgt-generator', 'all' or 'none'
bias         of the Linear layers of 'attention', 'feedForward' and 'generator'; norms keep theirs
empty_rows   weights of a query with no key left: 'uniform' (the seeds') or 'zero'
"""

import math

import torch
from torch import nn

import reference as r
import reference_seed000 as seed000
import reference_seed002 as seed002


class RMSNorm(nn.Module):
    """[..., features] -> [..., features]"""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x):
        return x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight


NORMS = {
    "layer": r.LayerNorm,
    "sample": seed000.LayerNorm,
    "torch": nn.LayerNorm,
    "rms": RMSNorm,
}


class SublayerConnection(nn.Module):
    """x [B, S, size], sublayer a function of one tensor -> [B, S, size]"""

    def __init__(self, size, dropout=0.1, order="pre", norm="layer"):
        super().__init__()
        self.norm = NORMS[norm](size)
        self.dropout = nn.Dropout(dropout)
        self.order = order

    def forward(self, x, sublayer):
        if self.order == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class FeedForward(nn.Module):
    """[..., D] -> [..., D]"""

    def __init__(self, d_model, d_ff, dropout=0.1, activation="relu", bias=True):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias)
        self.w_2 = nn.Linear(d_ff, d_model, bias)
        if activation == "swiglu":
            self.w_3 = nn.Linear(d_model, d_ff, bias)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.w_1(x)
        if self.activation == "relu":
            hidden = hidden.relu()
        elif self.activation == "gelu":
            hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        else:
            hidden = hidden * hidden.sigmoid() * self.w_3(x)
        return self.w_2(self.dropout(hidden))


def rotate(x):
    """[..., S, d] -> [..., S, d]: at place p the pair of columns (2i, 2i+1) is turned by the angle
    p / 10000^(2i/d)."""
    places, d = x.shape[-2:]
    exponents = torch.arange(0, d, 2, dtype=torch.float64) / d
    angles = torch.arange(places, dtype=torch.float64)[:, None] / 10000**exponents
    sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def attention(query, key, value, mask=None, dropout=None, empty_rows="uniform"):
    """As reference.attention; with 'zero' a query with no key left gets zeros."""
    if mask is None or empty_rows == "uniform":
        return r.attention(query, key, value, mask, dropout)
    scores = query @ key.mT / math.sqrt(query.size(-1))
    allowed = (mask != 0).expand(scores.shape)
    weights = torch.where(allowed, scores, -1e9).softmax(-1) * allowed.any(-1, keepdim=True)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


class MultiHeadedAttention(r.MultiHeadedAttention):
    """reference.py's; `rotary` turns queries and keys of each head, after their projections."""

    def __init__(self, h, d_model, dropout=0.1, bias=True, rotary=False, empty_rows="uniform"):
        super().__init__(h, d_model, dropout)
        self.linears = r.clones(nn.Linear(d_model, d_model, bias), 4)
        self.rotary, self.empty_rows = rotary, empty_rows

    def forward(self, query, key, value, mask=None):
        w_q, w_k, w_v, w_o = self.linears
        q, k, v = self.split(w_q(query)), self.split(w_k(key)), self.split(w_v(value))
        if self.rotary:
            q, k = rotate(q), rotate(k)
        if mask is not None:
            mask = mask.unsqueeze(1)
        heads, self.attn = attention(q, k, v, mask, self.dropout, self.empty_rows)
        return w_o(heads.transpose(1, 2).flatten(2))


class Positions(nn.Module):
    """[B, S, D] -> [B, S, D]"""

    def __init__(self, d_model, kind, dropout=0.1, max_len=200):
        super().__init__()
        self.kind = kind
        self.dropout = nn.Dropout(dropout)
        if kind == "learned":
            self.pe = nn.Parameter(torch.zeros(1, max_len, d_model))
        elif kind in ("paired", "perColumn"):
            self.register_buffer("pe", torch.zeros(1, max_len, d_model))
            self.make_tables_(torch.float32)

    def make_tables_(self, dtype):
        """The table as exact as `dtype` can hold it."""
        tables = {"paired": r.position_table, "perColumn": seed002.position_table}
        if self.kind in tables:
            exact = tables[self.kind](*self.pe.shape[1:], torch.float64)
            self.pe = exact.to(dtype)[None]

    def forward(self, x):
        if self.kind in ("none", "rotary"):
            return self.dropout(x)
        return self.dropout(x + self.pe[:, : x.size(1)])


def make_model(
    vocab_size,
    N=6,
    d_model=512,
    d_ff=2048,
    h=8,
    dropout=0.1,
    max_len=200,
    norm="layer",
    order="pre",
    final_norm=True,
    positions="paired",
    activation="relu",
    tie="none",
    bias=("attention", "feedForward", "generator"),
    empty_rows="uniform",
):
    """vocab_size: one number, or (source, target)."""
    source, target = vocab_size if isinstance(vocab_size, tuple) else (vocab_size, vocab_size)
    model = r.make_model(source, N, d_model, d_ff, h, dropout)
    rotary = positions == "rotary"

    def attend(turned):
        biased = "attention" in bias
        return MultiHeadedAttention(h, d_model, 0.1, biased, turned, empty_rows)

    for stack in (model.encoder, model.decoder):
        stack.norm = NORMS[norm](d_model) if final_norm else nn.Identity()
        for layer in stack.layers:
            # Only within one sequence do two places have a distance.
            layer.self_attn = attend(turned=rotary)
            if stack is model.decoder:
                layer.src_attn = attend(turned=False)
            layer.feed_forward = FeedForward(
                d_model, d_ff, dropout, activation, "feedForward" in bias
            )
            connection = SublayerConnection(d_model, dropout, order, norm)
            layer.sublayers = r.clones(connection, len(layer.sublayers))
    for embed, size in ((model.src_embed, source), (model.tgt_embed, target)):
        embed[0] = r.TransformerEmbedding(d_model, size)
        embed[1] = Positions(d_model, positions, dropout, max_len)
    model.generator.proj = nn.Linear(d_model, target, "generator" in bias)
    shared = model.tgt_embed[0].embedding
    if tie in ("src-tgt", "all"):
        model.src_embed[0].embedding.weight = shared.weight
    if tie in ("tgt-generator", "all"):
        model.generator.proj.weight = shared.weight
    return model
