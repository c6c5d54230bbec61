"""Every family of classifiers in torchvision, small: two blocks a stage where the
family has stages."""
from functools import partial

import torch
from torch import nn
from torchvision import models
from torchvision.models import convnext, densenet, efficientnet, maxvit, mobilenetv2, mobilenetv3, regnet, resnet, shufflenetv2, swin_transformer, vgg, vision_transformer

CLASSES = 10


def alexnet():
    net = models.alexnet(num_classes=CLASSES)
    net.classifier = nn.Sequential(nn.Dropout(), nn.Linear(256 * 36, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 64), nn.ReLU(True), nn.Linear(64, CLASSES))
    return net


def vgg_net(batch_norm):
    net = vgg.VGG(vgg.make_layers([16, 16, "M", 32, 32, "M", 32, 32, "M", 64, 64, "M"], batch_norm), CLASSES, False)
    net.classifier = nn.Sequential(nn.Linear(64 * 49, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES))
    return net


def efficient(v2):
    E, F = efficientnet.MBConvConfig, efficientnet.FusedMBConvConfig
    if v2:
        setting = [F(1, 3, 1, 16, 16, 2), F(4, 3, 2, 16, 24, 2), E(4, 3, 2, 24, 32, 2), E(6, 3, 1, 32, 40, 2)]
    else:
        one = partial(E, width_mult=1.0, depth_mult=1.0)
        setting = [one(1, 3, 1, 16, 16, 2), one(6, 3, 2, 16, 24, 2), one(6, 5, 2, 24, 40, 2), one(6, 3, 1, 40, 48, 2)]
    return efficientnet.EfficientNet(setting, 0.2, num_classes=CLASSES, last_channel=128, norm_layer=partial(nn.BatchNorm2d, eps=1e-3))


def regnet_net(se):
    return regnet.RegNet(regnet.BlockParams([2, 2, 2, 2], [16, 32, 48, 64], [16] * 4, [1.0] * 4, [2] * 4, se_ratio=0.25 if se else None), CLASSES)


def mobilenet_v3():
    c = mobilenetv3.InvertedResidualConfig
    last = partial(c, width_mult=1.0)
    rows = [last(16, 3, 16, 16, True, "RE", 2, 1), last(16, 3, 32, 24, False, "RE", 2, 1), last(24, 3, 48, 24, False, "RE", 1, 1), last(24, 5, 96, 40, True, "HS", 2, 1), last(40, 5, 96, 40, True, "HS", 1, 1)]
    return mobilenetv3.MobileNetV3(rows, 64, CLASSES)


def convnext_net():
    c = convnext.CNBlockConfig
    return convnext.ConvNeXt([c(16, 32, 2), c(32, 48, 2), c(48, 64, 2), c(64, None, 2)], num_classes=CLASSES)


def swin(version, patch=4, width=32, heads=(2, 4, 8), classes=CLASSES):
    block = {1: swin_transformer.SwinTransformerBlock, 2: swin_transformer.SwinTransformerBlockV2}[version]
    merging = {1: swin_transformer.PatchMerging, 2: swin_transformer.PatchMergingV2}[version]
    return swin_transformer.SwinTransformer([patch, patch], width, [2] * len(heads), list(heads), [4, 4], num_classes=classes, block=block, downsample_layer=merging)


NETS = {
    "alexnet": (224, alexnet),
    "convnext": (64, convnext_net),
    "densenet": (64, lambda: densenet.DenseNet(16, (2, 2, 2, 2), 16, num_classes=CLASSES)),
    "efficientnet": (64, lambda: efficient(False)),
    "efficientnet_v2": (64, lambda: efficient(True)),
    "googlenet": (64, lambda: models.GoogLeNet(CLASSES, aux_logits=False, init_weights=False)),
    "inception_v3": (96, lambda: models.Inception3(CLASSES, aux_logits=False, init_weights=False)),
    "maxvit": (64, lambda: maxvit.MaxVit((64, 64), 16, 4, [16, 32], [2, 2], 16, 0.0, num_classes=CLASSES)),
    "mnasnet": (64, lambda: models.MNASNet(0.35, CLASSES)),
    "mobilenet_v2": (64, lambda: mobilenetv2.MobileNetV2(CLASSES, 0.35)),
    "mobilenet_v3": (64, mobilenet_v3),
    "regnet_x": (64, lambda: regnet_net(False)),
    "regnet_y": (64, lambda: regnet_net(True)),
    "resnet_basic": (64, lambda: resnet.ResNet(resnet.BasicBlock, [2, 2, 2, 2], CLASSES)),
    "resnet_bottleneck": (64, lambda: resnet.ResNet(resnet.Bottleneck, [2, 2, 2, 2], CLASSES)),
    "resnext": (64, lambda: resnet.ResNet(resnet.Bottleneck, [2, 2, 2, 2], CLASSES, groups=8, width_per_group=4)),
    "shufflenet_v2": (64, lambda: shufflenetv2.ShuffleNetV2([2, 2, 2], [24, 24, 48, 96, 128], CLASSES)),
    "squeezenet1_0": (64, lambda: models.SqueezeNet("1_0", CLASSES)),
    "squeezenet1_1": (64, lambda: models.SqueezeNet("1_1", CLASSES)),
    "swin": (64, lambda: swin(1)),
    "swin_v2": (64, lambda: swin(2)),
    "vgg": (112, lambda: vgg_net(False)),
    "vgg_bn": (112, lambda: vgg_net(True)),
    "vit": (64, lambda: vision_transformer.VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=CLASSES)),
    "wide_resnet": (64, lambda: resnet.ResNet(resnet.Bottleneck, [2, 2, 2, 2], CLASSES, width_per_group=128)),
}
