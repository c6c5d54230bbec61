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


class WindowAttention(nn.Module):
    """Self-attention within windows (Liu et al., 2021), with a learned bias for each head and
    relative position. Shifted windows reach over the edge of the image; tokens at other edges
    have no weight there."""

    def __init__(self, side: int, window: int, shift: int, width: int, heads: int):
        super().__init__()
        self.side, self.window, self.shift, self.heads = side, window, shift, heads
        self.scale = (width // heads) ** -0.5
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.positions = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        rows, columns = torch.arange(window ** 2) // window, torch.arange(window ** 2) % window
        place = torch.stack([rows, columns])
        apart = place[:, :, None] - place[:, None, :] + window - 1
        self.register_buffer("index", (apart[0] * (2 * window - 1) + apart[1]).flatten(), persistent=False)
        part = (torch.arange(side) >= side - window).long() + (torch.arange(side) >= side - shift)
        parts = self.divide((3 * part[:, None] + part[None, :]).reshape(1, side, side, 1))[..., 0]
        hidden = (parts[:, None, :] != parts[:, :, None]) * -100.0
        self.register_buffer("hidden", hidden[:, None] if shift else None, persistent=False)

    def divide(self, x):
        """Makes the windows of [N, side, side, width]: [N * windows, tokens, width]."""
        n, w = self.side // self.window, self.window
        return x.reshape(-1, n, w, n, w, x.shape[3]).transpose(2, 3).reshape(-1, w * w, x.shape[3])

    def join(self, x):
        """Undoes divide."""
        n, w = self.side // self.window, self.window
        x = x.reshape(-1, n, n, w, w, x.shape[2]).transpose(2, 3)
        return x.reshape(-1, self.side, self.side, x.shape[5])

    def forward(self, x):
        width, tokens, windows = x.shape[3], self.window ** 2, (self.side // self.window) ** 2
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        qkv = self.qkv(self.divide(x)).reshape(-1, tokens, 3, self.heads, width // self.heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        bias = self.positions[self.index].reshape(tokens, tokens, self.heads).permute(2, 0, 1)
        weights = (q * self.scale) @ k.transpose(-2, -1) + bias
        if self.shift:
            weights = weights.reshape(-1, windows, self.heads, tokens, tokens) + self.hidden
            weights = weights.reshape(-1, self.heads, tokens, tokens)
        x = self.join(self.out((weights.softmax(-1) @ v).transpose(1, 2).reshape(-1, tokens, width)))
        return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x


class WindowBlock(nn.Module):
    """A pre-norm transformer block whose attention is within windows."""

    def __init__(self, side: int, shift: int, width: int, heads: int, window: int = 4):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), WindowAttention(side, window, shift, width, heads)
        self.norm2, self.dense = nn.LayerNorm(width), nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


class Merge(nn.Module):
    """Halves the sides of [N, side, side, width]: four neighbours become one token, of twice the width."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        side, width = x.shape[1], x.shape[3]
        x = x.reshape(-1, side // 2, 2, side // 2, 2, width).transpose(2, 3)
        return self.reduce(self.norm(x.reshape(-1, side // 2, side // 2, 4 * width)))


class Swin(nn.Module):
    """After Liu et al. (2021): patches of 4 x 4, two stages of blocks whose windows of 4 x 4
    tokens are shifted in every other one, tokens merged in between, the mean of all tokens."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.patches, self.embedded = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        self.blocks = nn.Sequential(
            WindowBlock(16, 0, width, 2), WindowBlock(16, 2, width, 2), Merge(width),
            WindowBlock(8, 0, 2 * width, 4), WindowBlock(8, 2, 2 * width, 4))
        self.norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, 12)

    def forward(self, x):
        x = self.embedded(self.patches(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.blocks(x)).mean((1, 2)))


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation of the channels of [N, C, H, W]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """A depthwise 7 x 7 convolution, a norm, two dense layers on each place, a scale for each channel."""

    def __init__(self, width: int):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        y = self.dense(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """After Liu et al. (2022): patches of 4 x 4, two stages of blocks, the mean of all places, a norm."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 4, 4), ChannelNorm(width))
        self.blocks = nn.Sequential(
            ConvNeXtBlock(width), ConvNeXtBlock(width),
            ChannelNorm(width), nn.Conv2d(width, 2 * width, 2, 2),
            ConvNeXtBlock(2 * width), ConvNeXtBlock(2 * width))
        self.pool, self.norm = nn.AdaptiveAvgPool2d(1), nn.LayerNorm(2 * width)
        self.head = nn.Linear(2 * width, 12)

    def forward(self, x):
        return self.head(self.norm(torch.flatten(self.pool(self.blocks(self.stem(x))), 1)))


class MixerBlock(nn.Module):
    """Dense layers along the tokens, then along the channels."""

    def __init__(self, tokens: int, width: int):
        super().__init__()
        self.norm1, self.mix = nn.LayerNorm(width), nn.Sequential(
            nn.Linear(tokens, tokens), nn.GELU(), nn.Linear(tokens, tokens))
        self.norm2, self.dense = nn.LayerNorm(width), nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.dense(self.norm2(x))


class Mixer(nn.Module):
    """After Tolstikhin et al. (2021): square patches, no attention, the mean of all tokens."""

    def __init__(self, patch: int = 8, width: int = 48, depth: int = 5):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*[MixerBlock((64 // patch) ** 2, width) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 12)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


NETS = {
    "vgg": lambda: vgg(norm=False),
    "vgg-bn": lambda: vgg(norm=True),
    "resnet": ResNet,
    "vit": ViT,
    "vit-16": lambda: ViT(patch=16, depth=4),
    "swin": Swin,
    "convnext": ConvNeXt,
    "mixer": Mixer,
}
