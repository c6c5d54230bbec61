"""Classifiers of the library transformers, small: two blocks a stage."""
from functools import partial

import transformers
from torch import nn

CLASSES = 10
VIT = dict(image_size=64, patch_size=16, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
STAGES = dict(hidden_sizes=[16, 32, 48, 64], depths=[2, 2, 2, 2])
SWIN = dict(image_size=64, embed_dim=32, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=4)

# architecture: its configuration, where it is unlike the published net's
TABLE = {
    "Beit": dict(VIT, use_relative_position_bias=True),
    "ConvNext": STAGES,
    "ConvNextV2": STAGES,
    "Cvt": dict(embed_dim=[16, 32, 64], num_heads=[1, 2, 4], depth=[2, 2, 3]),
    "DeiT": VIT,
    "Dinov2": dict(VIT, mlp_ratio=2),
    "MobileNetV2": dict(image_size=64, depth_multiplier=0.35),
    "MobileViT": dict(image_size=64, hidden_sizes=[32, 48, 64], neck_hidden_sizes=[16, 16, 24, 32, 48, 64, 128]),
    "Pvt": dict(image_size=64, hidden_sizes=[16, 32, 48, 64], num_attention_heads=[1, 2, 3, 4]),
    "RegNet": dict(STAGES, embedding_size=16, groups_width=16),
    "ResNet": dict(embedding_size=16, hidden_sizes=[64, 96, 128, 160], depths=[2, 2, 2, 2]),
    "Segformer": dict(hidden_sizes=[16, 32, 48, 64], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=64),
    "Swin": SWIN,
    "Swinv2": SWIN,
    "ViT": VIT,
}


class Logits(nn.Module):
    """A classifier that returns logits rather than a record that has them."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        return self.net(pixel_values=image, return_dict=False)[0]


def create(name, changes):
    config = getattr(transformers, name + "Config")(num_labels=CLASSES, **changes)
    return Logits(getattr(transformers, name + "ForImageClassification")(config))


NETS = {name.lower(): (64, partial(create, name, changes)) for name, changes in TABLE.items()}
