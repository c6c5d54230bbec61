"""The nets of the tasks: a backbone of the quickstart's ResNet and a small head.

Each takes float32 [N, 3, 64, 64], (pixel / 255 - 0.5) / 0.5.
"""

import pathlib
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).parents[1] / "quickstart"))
from nets import Residual  # noqa: E402


def conv(last: int, width: int, size: int = 3) -> nn.Module:
    return nn.Sequential(nn.Conv2d(last, width, size, 1, size // 2), nn.ReLU())


class Backbone(nn.Module):
    """The stem and three of the four blocks of the quickstart's ResNet: 24 channels
    on 16 x 16 places, and 40 on 8 x 8."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2, 2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Residual(16, 24, 1), Residual(24, 24, 1), Residual(24, 40, 2))

    def forward(self, x):
        fine = self.blocks[1](self.blocks[0](self.stem(x)))
        return fine, self.blocks[2](fine)


class Segmenter(nn.Module):
    """Logits of background, disc, square, triangle and cross for each pixel: the
    coarse channels beside the fine ones, upsampled from 32 x 32 places."""

    outputs = ["logits"]

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.coarse, self.fine = conv(40, 24), conv(48, 24)
        self.up = nn.ConvTranspose2d(24, 16, 2, 2)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv2d(16, 5, 3, 1, 1))

    def forward(self, x):
        fine, coarse = self.backbone(x)
        coarse = nn.functional.interpolate(self.coarse(coarse), scale_factor=2, mode="nearest")
        y = self.head(self.up(self.fine(torch.cat([fine, coarse], 1))))
        return nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)


class Detector(nn.Module):
    """64 rows, one for each place of 8 x 8 pixels: left, top, right and bottom in
    pixels, the probability that an object's centre is there, and the probabilities of
    disc, square, triangle and cross. Nothing is suppressed."""

    outputs = ["detections"]

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.neck = conv(40, 32)
        self.head = nn.Conv2d(32, 9, 1)
        at = torch.arange(8) * 8.0 + 4
        self.register_buffer("places", torch.stack(
            [at.repeat(8), at.repeat_interleave(8)], 1), persistent=False)  # [64, 2], x and y

    def forward(self, x):
        y = self.head(self.neck(self.backbone(x)[1])).flatten(2).transpose(1, 2)
        low = self.places - 32 * torch.sigmoid(y[:, :, :2])
        high = self.places + 32 * torch.sigmoid(y[:, :, 2:4])
        return torch.cat([low, high, torch.sigmoid(y[:, :, 4:5]), torch.softmax(y[:, :, 5:], 2)], 2)


class Tagger(nn.Module):
    """Three outputs: a logit for each of 12 classes that an image may have, one for
    whether there is a disc, and how much of the image objects cover, in percent."""

    outputs = ["tags", "disc", "covered"]

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.neck = conv(40, 32)
        self.tags, self.disc, self.covered = nn.Conv2d(32, 12, 1), nn.Conv2d(32, 1, 1), nn.Linear(32, 1)

    def forward(self, x):
        y = self.neck(self.backbone(x)[1])
        return (self.tags(y).amax((2, 3)), self.disc(y).amax((2, 3)), self.covered(y.mean((2, 3))))


class Embedder(nn.Module):
    """An embedding [32] of the image, in one space with those of texts."""

    outputs = ["embedding"]

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.neck, self.head = conv(40, 32), nn.Linear(32, 32)
        # The embedding of a text is the sum of those of its two words.
        self.outlines, self.textures = nn.Parameter(torch.randn(4, 32)), nn.Parameter(torch.randn(3, 32))

    def texts(self):
        return (self.outlines[:, None] + self.textures[None]).reshape(12, 32)

    def forward(self, x):
        return self.head(self.neck(self.backbone(x)[1]).mean((2, 3)))


NETS = {"segmenter": Segmenter, "detector": Detector, "tagger": Tagger, "embedder": Embedder}
