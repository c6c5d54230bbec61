"""New numbers for every parameter and buffer of a net.

What frameworks start with hides wrong rules: a last BatchNormalization of zeros or a
layer scale of 1e-6 switches residual branches off, biases of zero and statistics of
0 and 1 make normalisations do nothing.
"""
import math

import torch

# Tables and tokens: matrices that are added, not multiplied.
ADDED = ("pos", "token", "table", "attention_biases", "rel_", "query", "embed_", "latent", "bias")
# Matrices and vectors that scale channels, heads or blocks.
SCALES = ("gamma", "scale", "alpha", "layer_scale", "temperature", "ls1", "ls2", "gain", "lambda", "skip_weight", "norm")


def redraw(net, seed, gain):
    """Draws parameters and the statistics of normalisations: weights N(0, gain²/fan-in)
    of convolutions and N(0, 1/fan-in) of other products, scales U(0.5, 1.5), biases and
    means N(0, 0.2), variances U(0.5, 2)."""
    g = torch.Generator().manual_seed(seed)

    def normal(t, std):
        t.copy_(torch.randn(t.shape, generator=g) * std)

    def uniform(t, low, high):
        t.copy_(torch.rand(t.shape, generator=g) * (high - low) + low)

    with torch.no_grad():
        for name, t in net.named_parameters():
            last = name.rsplit(".", 1)[-1]
            wide = sum(d > 1 for d in t.shape) > 1
            if any(s in last for s in SCALES) or (not wide and "bias" not in last and not any(s in last for s in ADDED)):
                uniform(t, 0.5, 1.5)
            elif "bias" in last or any(s in last for s in ADDED):
                normal(t, 0.2)
            else:
                conv = len(t.shape) >= 4
                fan = math.prod(t.shape[1:]) if len(t.shape) != 3 else t.shape[1]
                normal(t, (gain if conv else 1) / math.sqrt(fan))
        for name, t in net.named_buffers():
            if name.endswith("running_mean"):
                normal(t, 0.2)
            elif name.endswith("running_var"):
                uniform(t, 0.5, 2)
    # Other buffers are tables of indices, masks and frequencies, which have to be
    # what they are.
