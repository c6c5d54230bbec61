"""The nets of the quickstart: small, but with every part of their big relatives.

Each takes float32 [N, 3, 64, 64], (pixel / 255 - 0.5) / 0.5, and gives 12 logits.
"""

import torch
from torch import nn


def vgg(norm: bool) -> nn.Module:
    """After Simonyan and Zisserman (2015): 3x3 convolutions, max-pooling, two
    dense layers; with batch normalisation after each convolution, or without. The
    first convolution is strided, which saves most of the work."""
    layers, last = [], 3
    for width in (16, 24, "pool", 40, 40, "pool", 56, "pool"):
        if width == "pool":
            layers.append(nn.MaxPool2d(2))
            continue
        layers.append(nn.Conv2d(last, width, 3, 2 if last == 3 else 1, 1, bias=not norm))
        if norm:
            layers.append(nn.BatchNorm2d(width))
        layers.append(nn.ReLU())
        last = width
    layers += [nn.Flatten(), nn.Linear(last * 4 * 4, 40), nn.ReLU(), nn.Linear(40, 12)]
    return nn.Sequential(*layers)


class Residual(nn.Module):
    """A basic block of He et al. (2016): two convolutions and a shortcut, which
    is a strided 1x1 convolution where the size or the width changes."""

    def __init__(self, last: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(last, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.shortcut = nn.Sequential()
        if stride != 1 or last != width:
            self.shortcut = nn.Sequential(nn.Conv2d(last, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A strided stem, overlapping 3x3/2 max-pooling, four residual blocks."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2, 2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(
            Residual(16, 24, 1), Residual(24, 24, 1), Residual(24, 40, 2), Residual(40, 40, 1))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(40, 12)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al., 2017)."""

    def __init__(self, tokens: int, width: int, heads: int):
        super().__init__()
        self.tokens, self.width, self.heads, self.scale = tokens, width, heads, (width // heads) ** -0.5
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        qkv = self.qkv(x).reshape(-1, self.tokens, 3, self.heads, self.width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, self.tokens, self.width))


class Encoder(nn.Module):
    """A pre-norm transformer block with a GELU in its dense part."""

    def __init__(self, tokens: int, width: int, heads: int):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(tokens, width, heads)
        self.norm2, self.dense = nn.LayerNorm(width), nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


class ViT(nn.Module):
    """After Dosovitskiy et al. (2021): square patches, a class token, learned
    positions, pre-norm blocks."""

    def __init__(self, patch: int = 8, width: int = 48, depth: int = 5, heads: int = 4):
        super().__init__()
        tokens = 1 + (64 // patch) ** 2  # the class token and one for each patch
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.blocks = nn.Sequential(*[Encoder(tokens, width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 12)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


NETS = {
    "vgg": lambda: vgg(norm=False),
    "vgg-bn": lambda: vgg(norm=True),
    "resnet": ResNet,
    "vit": ViT,
    "vit-16": lambda: ViT(patch=16, depth=4),
}
