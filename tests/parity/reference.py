"""The Transformer of seed 001 in PyTorch: the figures torchformer is held to.

Written from the post alone, never from the TypeScript, and kept free of anything that would make
it fast. Classes, constructor arguments and attributes carry the post's names, so a state dict
made here has the keys of the post's modules.

Run side by side with the post's own code (with dropout, six steps of Adam, both float types) it gives
the same bits: initial weights, losses, gradients, trained weights, attention weights, position table.

Shapes: B sentences, S source tokens, T target tokens, D = d_model, H heads, V vocabulary.

What the post decides, taken over as it stands
----------------------------------------------
 1.  Embeddings are scaled by sqrt(d_model).
 2.  Positions: column 2i is sin(p / 10000^(2i/d)), column 2i+1 its cosine. The table is computed
     in float32 whatever the model's type, has 200 rows, is the buffer `pe` of shape [1, 200, D]
     and so is part of the state dict. Dropout follows the sum.
 3.  attention: scores are divided by sqrt(d_k) after the product; where the mask is zero the
     score becomes -1e9 (finite, so a row with no key left is uniform over all its keys and gets
     no score gradient); dropout acts on the weights, and the weights returned are those after
     dropout.
 4.  MultiHeadedAttention takes a mask of rank 3, [B, 1 or Sq, Sk], and adds the head axis at 1.
     Four Linear layers with bias, the last one for the output. The last weights stay in `attn`.
 5.  LayerNorm: population standard deviation, eps 1e-6 inside the root, std squared again
     (sqrt(std^2 + eps)); gain `a_2`, offset `b_2`.
 6.  Feed-forward: w_2(dropout(relu(w_1 x))).
 7.  SublayerConnection is pre-norm, x + dropout(sublayer(norm(x))), so Encoder and Decoder end
     with a norm of their own.
 8.  The decoder layer norms its own stream only: the memory enters cross-attention as the encoder
     left it, after the encoder's final norm.
 9.  Generator returns log-probabilities. Transformer.forward does not call it: the loss does.
 10. make_model hands `dropout` to positions, feed-forward and sublayers; attention is built
     without it and keeps its own default of 0.1. `max_len` is not an argument of make_model.
 11. Everything is deep-copied, so no two parts share a parameter: source embedding, target
     embedding and generator are three matrices. Parameters with more than one dimension are drawn
     anew by xavier-uniform (embeddings too); biases keep the draw of nn.Linear and, through the
     copies, start equal in all clones.
 12. Loss: CrossEntropyLoss(ignore_index=0, reduction='sum') over the log-probabilities, divided
     by the batch's token count. Its second log-softmax changes nothing mathematically.
 13. Order of construction is the post's, so one seed gives the post's initial weights.

What the post leaves open, decided here
---------------------------------------
 a.  The batch class is imported there and not shown. Here: tgt is the target without its last
     token, tgt_y the target without its first, masks are `ids != 0` for the source, [B, 1, S],
     and the same combined with the lower triangle for the target, [B, T, T]; ntokens counts tgt_y
     != 0.
 b.  Decoding is not shown. Here: greedy, the whole prefix decoded anew for each token, ties to
     the lowest id (argmax), a finished row continues with padding, eos is not part of the answer.
 c.  Its device constant is dropped: everything is built on the CPU.
 d.  Where the post fails with a shape error or an assertion (odd d_model, d_model not divisible
     by h) this file raises ValueError.
 e.  Validation loss is the token mean over all batches (sum of summed losses by sum of tokens),
     not the mean of batch means.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch import nn

PAD = 0


def clones(module, N):
    return nn.ModuleList(copy.deepcopy(module) for _ in range(N))


class TransformerEmbedding(nn.Module):
    """ids [B, S] -> [B, S, D]"""

    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(vocab_size, d_model)

    def forward(self, x):
        return math.sqrt(self.d_model) * self.embedding(x)


def position_table(max_len, d_model, dtype=torch.float32):
    """[max_len, D]; float32 is the post's own arithmetic, float64 the exact table."""
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    frequency = torch.exp(torch.arange(0, d_model, 2).to(dtype) * (-math.log(10000.0) / d_model))
    angle = torch.arange(max_len, dtype=dtype)[:, None] * frequency
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class PositionalEncoding(nn.Module):
    """[B, S, D] -> [B, S, D]"""

    def __init__(self, d_model, dropout=0.1, max_len=200):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", position_table(max_len, d_model)[None])

    def forward(self, x):
        length = x.size(1)
        return self.dropout(x + self.pe[:, :length])


def attention(query, key, value, mask=None, dropout=None):
    """[..., Sq, Dk], [..., Sk, Dk], [..., Sk, Dv] -> output [..., Sq, Dv], weights [..., Sq, Sk]"""
    scores = query @ key.mT / math.sqrt(query.size(-1))
    if mask is not None:
        scores = torch.where(mask != 0, scores, -1e9)
    weights = scores.softmax(-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


class MultiHeadedAttention(nn.Module):
    """query [B, Sq, D], key and value [B, Sk, D], mask [B, 1 or Sq, Sk] -> [B, Sq, D]"""

    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        if d_model % h:
            raise ValueError(f"d_model {d_model} is not divisible by {h} heads")
        self.h, self.d_k = h, d_model // h
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn = None
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        """[B, S, D] -> [B, H, S, D/H]"""
        return x.unflatten(-1, (self.h, self.d_k)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        w_q, w_k, w_v, w_o = self.linears
        if mask is not None:
            mask = mask.unsqueeze(1)
        q, k, v = self.split(w_q(query)), self.split(w_k(key)), self.split(w_v(value))
        heads, self.attn = attention(q, k, v, mask, self.dropout)
        return w_o(heads.transpose(1, 2).flatten(2))


class LayerNorm(nn.Module):
    """[..., features] -> [..., features]"""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, correction=0, keepdim=True)
        return self.a_2 * (x - mean) / (std.square() + self.eps).sqrt() + self.b_2


class PositionwiseFeedForward(nn.Module):
    """[..., D] -> [..., D]"""

    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.w_1(x).relu()
        return self.w_2(self.dropout(hidden))


class SublayerConnection(nn.Module):
    """x [B, S, size], sublayer a function of one tensor -> [B, S, size]"""

    def __init__(self, size, dropout):
        super().__init__()
        self.norm = LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class EncoderLayer(nn.Module):
    """x [B, S, size], mask [B, 1, S] -> [B, S, size]"""

    def __init__(self, size, self_attn, feed_forward, dropout):
        super().__init__()
        self.size = size
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        self.sublayers = clones(SublayerConnection(size, dropout), 2)

    def forward(self, x, mask):
        attend, transform = self.sublayers
        x = attend(x, lambda y: self.self_attn(y, y, y, mask))
        return transform(x, self.feed_forward)


class Encoder(nn.Module):
    def __init__(self, layer, N):
        super().__init__()
        self.layers = clones(layer, N)
        self.norm = LayerNorm(layer.size)

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class DecoderLayer(nn.Module):
    """x [B, T, D], memory [B, S, D], src_mask [B, 1, S], tgt_mask [B, T, T] -> [B, T, D]"""

    def __init__(self, d_model, self_attn, src_attn, feed_forward, dropout):
        super().__init__()
        self.size = d_model
        self.self_attn = self_attn
        self.src_attn = src_attn
        self.feed_forward = feed_forward
        self.sublayers = clones(SublayerConnection(d_model, dropout), 3)

    def forward(self, x, memory, src_mask, tgt_mask):
        attend_self, attend_source, transform = self.sublayers
        x = attend_self(x, lambda y: self.self_attn(y, y, y, tgt_mask))
        x = attend_source(x, lambda y: self.src_attn(y, memory, memory, src_mask))
        return transform(x, self.feed_forward)


class Decoder(nn.Module):
    def __init__(self, layer, N):
        super().__init__()
        self.layers = clones(layer, N)
        self.norm = LayerNorm(layer.size)

    def forward(self, x, memory, src_mask, tgt_mask):
        for layer in self.layers:
            x = layer(x, memory, src_mask, tgt_mask)
        return self.norm(x)


class Generator(nn.Module):
    """[..., D] -> log-probabilities [..., V]"""

    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab_size)

    def forward(self, x):
        return self.proj(x).log_softmax(-1)


class Transformer(nn.Module):
    """src [B, S], tgt [B, T], src_mask [B, 1, S], tgt_mask [B, T, T] -> [B, T, D]"""

    def __init__(self, encoder, decoder, src_embed, tgt_embed, generator):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.src_embed = src_embed
        self.tgt_embed = tgt_embed
        self.generator = generator

    def encode(self, src, src_mask):
        return self.encoder(self.src_embed(src), src_mask)

    def decode(self, memory, src_mask, tgt, tgt_mask):
        return self.decoder(self.tgt_embed(tgt), memory, src_mask, tgt_mask)

    def forward(self, src, tgt, src_mask, tgt_mask):
        memory = self.encode(src, src_mask)
        return self.decode(memory, src_mask, tgt, tgt_mask)


def make_model(vocab_size, N=6, d_model=512, d_ff=2048, h=8, dropout=0.1):
    copied = copy.deepcopy
    attn = MultiHeadedAttention(h, d_model)
    ff = PositionwiseFeedForward(d_model, d_ff, dropout)
    position = PositionalEncoding(d_model, dropout)

    def embed():
        return nn.Sequential(TransformerEmbedding(d_model, vocab_size), copied(position))

    encoder = Encoder(EncoderLayer(d_model, copied(attn), copied(ff), dropout), N)
    decoder = Decoder(DecoderLayer(d_model, copied(attn), copied(attn), copied(ff), dropout), N)
    src_embed, tgt_embed = embed(), embed()
    generator = Generator(d_model, vocab_size)
    model = Transformer(encoder, decoder, src_embed, tgt_embed, generator)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return model


def without_dropout(model):
    """Sets every dropout of the model, attention's own included, to 0."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def padding_mask(ids, pad=PAD):
    """[B, S] -> [B, 1, S], true where a token stands"""
    return (ids != pad).unsqueeze(1)


def subsequent_mask(size):
    """[1, size, size], true where the key is not later than the query"""
    return torch.ones(1, size, size, dtype=torch.bool).tril()


@dataclass
class Batch:
    src: torch.Tensor
    tgt: torch.Tensor
    tgt_y: torch.Tensor
    src_mask: torch.Tensor
    tgt_mask: torch.Tensor
    ntokens: int

    @staticmethod
    def of(src, target):
        """src [B, S], target [B, T+1] with bos and eos, both padded with 0"""
        tgt, tgt_y = target[:, :-1], target[:, 1:]
        tgt_mask = padding_mask(tgt) & subsequent_mask(tgt.size(1))
        return Batch(src, tgt, tgt_y, padding_mask(src), tgt_mask, int((tgt_y != PAD).sum()))


def summed_loss(model, batch):
    log_probabilities = model.generator(model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")
    return criterion(log_probabilities.flatten(0, 1), batch.tgt_y.flatten())


def loss_compute(model, batch):
    return summed_loss(model, batch) / batch.ntokens


@torch.no_grad()
def validation_loss(model, batches):
    model.eval()
    total = sum(summed_loss(model, batch).item() for batch in batches)
    return total / sum(batch.ntokens for batch in batches)


@torch.no_grad()
def greedy_decode(model, src, max_len, bos, eos):
    """src [B, S] -> a list of B id lists of at most max_len tokens, without bos and eos; and the
    smallest lead of a chosen token over the next best one, which says how firm the answer is."""
    model.eval()
    src_mask = padding_mask(src)
    memory = model.encode(src, src_mask)
    tgt = torch.full((src.size(0), 1), bos)
    finished = torch.zeros(src.size(0), dtype=torch.bool)
    lead = math.inf
    for _ in range(max_len):
        out = model.decode(memory, src_mask, tgt, subsequent_mask(tgt.size(1)))
        log_probabilities = model.generator(out[:, -1])
        best, second = log_probabilities[~finished].topk(2).values.unbind(-1)
        lead = min(lead, (best - second).min().item())
        token = log_probabilities.argmax(-1).masked_fill(finished, PAD)
        tgt = torch.cat((tgt, token[:, None]), dim=1)
        finished |= token == eos
        if finished.all():
            break
    rows = [row.tolist() for row in tgt[:, 1:]]
    return [row[: row.index(eos)] if eos in row else row for row in rows], lead
