"""Ten nets of unlike families, small enough to be kept with the project, packed:

    STEPS="reference trace" python zoo.py testdata subset/convnext subset/efficientnet …
    STEPS="reference dynamo" python zoo.py testdata subset/densenet subset/mixer …
    STEPS=relevance python zoo.py testdata subset/convnext subset/efficientnet subset/mixer subset/mobilenet_v3 subset/swin subset/swin_v2 subset/vit
    gzip -9n testdata/*.onnx
"""
from functools import partial

from timm.models import mlp_mixer, resnet
from torch import nn
from torchvision.models import convnext, densenet, efficientnet, mobilenetv3, shufflenetv2, vision_transformer

from torchvision_nets import swin

CLASSES = 5
SIZE = 32


def efficient():
    E = partial(efficientnet.MBConvConfig, width_mult=1.0, depth_mult=1.0)
    return efficientnet.EfficientNet([E(1, 3, 1, 16, 16, 2), E(3, 5, 2, 16, 16, 2)], 0.2, num_classes=CLASSES, last_channel=32, norm_layer=partial(nn.BatchNorm2d, eps=1e-3))


def conv_next():
    c = convnext.CNBlockConfig
    return convnext.ConvNeXt([c(16, 24, 2), c(24, None, 2)], num_classes=CLASSES)


def mobile():
    c = partial(mobilenetv3.InvertedResidualConfig, width_mult=1.0)
    rows = [c(16, 3, 16, 16, True, "RE", 2, 1), c(16, 5, 32, 16, True, "HS", 2, 1), c(16, 5, 32, 16, True, "HS", 1, 1)]
    return mobilenetv3.MobileNetV3(rows, 32, CLASSES)


NETS = {
    "convnext": (SIZE, conv_next),
    "densenet": (SIZE, lambda: densenet.DenseNet(8, (2, 2), 16, num_classes=CLASSES)),
    "efficientnet": (SIZE, efficient),
    "mixer": (SIZE, lambda: mlp_mixer.MlpMixer(CLASSES, SIZE, patch_size=8, num_blocks=2, embed_dim=32, mlp_ratio=(0.5, 2.0))),
    "mobilenet_v3": (SIZE, mobile),
    "resnet": (SIZE, lambda: resnet.ResNet(resnet.BasicBlock, (2, 1, 1, 1), CLASSES, channels=(16, 16, 16, 16), stem_width=16)),
    "shufflenet": (SIZE, lambda: shufflenetv2.ShuffleNetV2([2, 2, 2], [16, 16, 32, 32, 32], CLASSES)),
    "swin": (SIZE, lambda: swin(1, width=16, heads=(2,), classes=CLASSES)),
    "swin_v2": (SIZE, lambda: swin(2, width=16, heads=(2,), classes=CLASSES)),
    "vit": (SIZE, lambda: vision_transformer.VisionTransformer(SIZE, 8, 2, 2, 32, 64, num_classes=CLASSES)),
}
