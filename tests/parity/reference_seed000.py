"""The general parts of seed 000 in PyTorch: norm, sublayer connection, feed-forward, attention.

Written from the post alone, never from the TypeScript. Classes, constructor arguments and attributes
carry the post's names, so a state dict made here has the keys of the post's modules.

Shapes: B sentences, Sq queries, Sk keys, D = d_model, H = num_heads.

What the post decides, taken over as it stands
----------------------------------------------
 1.  LayerNorm: sample standard deviation (n - 1), eps 1e-6 added to it outside any root; gain `k`,
     offset `b`.
 2.  SubLayerConnection: the line in force is pre-norm, data + dropout(f(norm(data))), with one norm
     `layer_norm` and dropout 0.2. The paper's order stands there commented out:
     norm(dropout(f(data)) + data).
 3.  FeedForward: linear_2(dropout(relu(linear_1 x))), dropout 0.2, the hidden size is `output_dim`.
 4.  attention divides by the root of the query's last dimension, fills with -1e9 where the mask is
     zero (finite: a row with no key left is uniform over all its keys and its scores get no
     gradient), and returns the weights after dropout.
 5.  MultiHeadAttention: `linear_list` holds four copies of ONE Linear, so all four start with the
     same weight and bias; the last is for the output. Nothing else initialises them. Dropout 0.2,
     on the weights only. A width that the heads do not divide is refused.

What is decided here
--------------------
 a.  The post lifts a [B, Sq, Sk] mask to [1, B, Sq, Sk], which gives sentence b's mask to head b.
     Here it becomes [B, 1, Sq, Sk]: a mask of rank 3 is batch-first. One of rank 2 or 4 passes as it
     is.
 b.  The post's attribute `weight` is declared and never assigned. Here the weights are kept there.
 c.  `order` chooses between the two lines of SubLayerConnection; the default is the one in force.
 d.  The root in the post's formula is of d_model, in its code of the width of one head: the code
     counts.
 e.  With one feature the sample deviation is 0/0: refused.
"""

import copy
import math

import torch
from torch import nn


class LayerNorm(nn.Module):
    """[..., D] -> [..., D]"""

    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        if d_model < 2:
            raise ValueError("a sample deviation needs two features")
        self.eps = eps
        self.k = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))

    def forward(self, data):
        mean = data.mean(-1, keepdim=True)
        std = data.std(-1, correction=1, keepdim=True)
        return self.k * (data - mean) / (std + self.eps) + self.b


class SubLayerConnection(nn.Module):
    """data [B, S, D], data_handle_obj a function of one tensor -> [B, S, D]"""

    def __init__(self, d_model, dropout=0.2, order="pre"):
        super().__init__()
        self.d_model, self.order = d_model, order
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = LayerNorm(d_model)

    def forward(self, data, data_handle_obj):
        if self.order == "post":
            return self.layer_norm(data + self.dropout(data_handle_obj(data)))
        return data + self.dropout(data_handle_obj(self.layer_norm(data)))


class FeedForward(nn.Module):
    """[..., D] -> [..., D]"""

    def __init__(self, d_model, output_dim, dropout=0.2):
        super().__init__()
        self.linear_1 = nn.Linear(d_model, output_dim)
        self.dropout = nn.Dropout(dropout)
        self.linear_2 = nn.Linear(output_dim, d_model)

    def forward(self, data):
        return self.linear_2(self.dropout(self.linear_1(data).relu()))


def attention(query, key, value, mask=None, dropout=None):
    """[..., Sq, Dk], [..., Sk, Dk], [..., Sk, Dv] -> C [..., Sq, Dv], weight [..., Sq, Sk]"""
    similarity = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        similarity = torch.where(mask == 0, -1e9, similarity)
    weight = torch.softmax(similarity, dim=-1)
    if dropout is not None:
        weight = dropout(weight)
    return weight @ value, weight


def clone(module_obj, cnt):
    return nn.ModuleList(copy.deepcopy(module_obj) for _ in range(cnt))


class MultiHeadAttention(nn.Module):
    """query [B, Sq, D], key and value [B, Sk, D], mask of rank 2, 3 or 4 -> [B, Sq, D]"""

    def __init__(self, d_model, num_heads, dropout_p=0.2):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by {num_heads} heads")
        self.d_model, self.num_heads = d_model, num_heads
        self.head_him = d_model // num_heads
        self.dropout = nn.Dropout(dropout_p)
        self.weight = None
        self.linear_list = clone(nn.Linear(d_model, d_model), 4)

    def heads(self, linear, data):
        """[B, S, D] -> [B, H, S, D/H]"""
        return linear(data).unflatten(-1, (self.num_heads, self.head_him)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        to_query, to_key, to_value, to_output = self.linear_list
        C, self.weight = attention(
            self.heads(to_query, query),
            self.heads(to_key, key),
            self.heads(to_value, value),
            mask,
            self.dropout,
        )
        return to_output(C.transpose(1, 2).flatten(2))
