"""Makes the ONNX files that the commands at the paper's scale name.

Downloads weights from torchvision, timm and the authors of Places365, and prints the
SHA-256 of each file that it makes: with other versions of PyTorch the same weights
make other files. A command finds the files where it is run in the folder that -o
names. Nets that nobody publishes are listed, with what to train in their place.

Needs torch, torchvision, timm and onnx. Tried with torch 2.15, torchvision 0.29 and
timm 1.0.31, and with random weights (--untrained) alone: the machine that wrote this
can't fetch weights.
"""

import argparse
import hashlib
import pathlib
import sys
import warnings

# By file: the library and its name of the net, its name of the weights, the size of
# images, and the preset that model/onnx takes for these weights.
NETS = {
    # absLRP. Its code takes timm's ViTs.
    "vgg16.onnx": ("torchvision", "vgg16", "IMAGENET1K_V1", 224, "imagenet"),
    "resnet50.onnx": ("torchvision", "resnet50", "IMAGENET1K_V1", 224, "imagenet"),
    "vit-b-16.onnx": ("timm", "vit_base_patch16_224", "augreg_in21k_ft_in1k", 224, "half"),
    "vit-b-16-384.onnx": ("timm", "vit_base_patch16_384", "augreg_in21k_ft_in1k", 384, "half"),
    "vit-b-32.onnx": ("timm", "vit_base_patch32_224", "augreg_in21k_ft_in1k", 224, "half"),
    # DiFull.
    "vgg11.onnx": ("torchvision", "vgg11", "IMAGENET1K_V1", 224, "imagenet"),
    "vgg11-bn.onnx": ("torchvision", "vgg11_bn", "IMAGENET1K_V1", 224, "imagenet"),
    "resnet18.onnx": ("torchvision", "resnet18", "IMAGENET1K_V1", 224, "imagenet"),
    # MAS. The ViT is that of Chefer et al., whose code the authors' tests take.
    "nets/r101-imagenet.onnx": ("torchvision", "resnet101", "IMAGENET1K_V1", 224, "imagenet"),
    "nets/vit16-imagenet.onnx": ("timm", "vit_base_patch16_224", "orig_in21k_ft_in1k", 224, "half"),
    # Meta-Rank.
    "nets/imagenet/resnet18.onnx": ("torchvision", "resnet18", "IMAGENET1K_V1", 224, "imagenet"),
    "nets/imagenet/vgg19.onnx": ("torchvision", "vgg19", "IMAGENET1K_V1", 224, "imagenet"),
    "nets/imagenet/inception_v4.onnx": ("timm", "inception_v4", "tf_in1k", 299, "half"),
    "nets/places365/resnet18.onnx": ("places365", "resnet18", "resnet18_places365.pth.tar", 224, "imagenet"),
    "nets/places365/resnet50.onnx": ("places365", "resnet50", "resnet50_places365.pth.tar", 224, "imagenet"),
}

# What the commands name and nobody publishes: the net to train, and on what.
TRAIN = {
    "vgg16-voc.onnx": "vgg16 of torchvision, fine-tuned to the 20 classes of VOC 2012",
    "resnet50-voc.onnx": "resnet50 of torchvision, fine-tuned to the 20 classes of VOC 2012",
    "vit-b-16-voc.onnx": "vit_base_patch16_224 of timm, fine-tuned to the 20 classes of VOC 2012",
    "nets/r101-resisc45.onnx": "resnet101 of torchvision, fine-tuned to NWPU-RESISC45",
    "nets/vit16-resisc45.onnx": "vit_base_patch16_224 of timm, fine-tuned to NWPU-RESISC45",
    "nets/resisc45/resnet18.onnx": "resnet18 of torchvision, trained on NWPU-RESISC45",
    "nets/resisc45/vgg19.onnx": "vgg19 of torchvision, trained on NWPU-RESISC45",
    "nets/resisc45/inception_v4.onnx": "inception_v4 of timm, trained on NWPU-RESISC45",
    "nets/resisc45/efficientnet_b2.onnx": "efficientnet_b2 of timm, trained on NWPU-RESISC45",
    "nets/resisc45/densenet121.onnx": "densenet121 of torchvision, trained on NWPU-RESISC45",
    "nets/food101/resnet18.onnx": "resnet18 of torchvision, trained on Food-101",
    "nets/food101/vgg19.onnx": "vgg19 of torchvision, trained on Food-101",
    "nets/food101/inception_v4.onnx": "inception_v4 of timm, trained on Food-101",
    "resnet18-e050.onnx": "resnet18 of torchvision after 50 epochs on NWPU-RESISC45",
    "resnet18-e100.onnx": "resnet18 of torchvision after 100 epochs on NWPU-RESISC45",
    "resnet18-e150.onnx": "resnet18 of torchvision after 150 epochs on NWPU-RESISC45",
    "resnet18-e175.onnx": "resnet18 of torchvision after 175 epochs on NWPU-RESISC45",
    "resnet18-e200.onnx": "resnet18 of torchvision after 200 epochs on NWPU-RESISC45",
}


# Where the authors of Places365 publish their nets, trained from torchvision's.
PLACES365 = "http://places2.csail.mit.edu/models_places365/"


def build(library, net, weights, untrained):
    """Returns a net in evaluation mode, with its weights or, to try out, random ones."""
    if library == "torchvision":
        import torchvision

        return torchvision.models.get_model(net, weights=None if untrained else weights).eval()
    if library == "places365":
        import torch
        import torchvision

        model = torchvision.models.get_model(net, weights=None, num_classes=365)
        if not untrained:
            kept = torch.hub.load_state_dict_from_url(PLACES365 + weights, map_location="cpu")
            model.load_state_dict({k.removeprefix("module."): v for k, v in kept["state_dict"].items()})
        return model.eval()
    import timm

    timm.layers.set_fused_attn(False)  # attention as products and a softmax, which methods find
    if untrained:
        return timm.create_model(net).eval()
    return timm.create_model(f"{net}.{weights}", pretrained=True).eval()


def export(net, size, file):
    """Writes a net for any number of images, with BatchNormalization as it is."""
    import torch

    file.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (torch.zeros(1, 3, size, size),), str(file), input_names=["input"],
            output_names=["logits"], dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}},
            opset_version=17, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  python experiments/papers/export.py --only vgg16.onnx,resnet50.onnx -o ~/papers")
    p.add_argument("-o", default=".", metavar="DIR", help="where the files go (the working folder)")
    p.add_argument("--only", metavar="NAMES", help="these files, by the names that --list gives")
    p.add_argument("--list", action="store_true", help="list the files, and those that nobody publishes")
    p.add_argument("--untrained", action="store_true", help="random weights, to try the export")
    a = p.parse_args()
    if a.list:
        for file, (library, net, weights, size, preset) in NETS.items():
            print(f"{file}: {net} of {library}, {weights}, {size} × {size}, preset {preset}")
        for file, what in TRAIN.items():
            print(f"{file}: not published; {what}")
        return
    names = a.only.split(",") if a.only else list(NETS)
    for name in names:
        if name in TRAIN:
            sys.exit(f"{name} isn't published: train {TRAIN[name]}")
        if name not in NETS:
            sys.exit(f"{name} is none of the files: see --list")
    import torch

    print(f"PyTorch {torch.__version__}", file=sys.stderr)
    for name in names:
        library, net, weights, size, preset = NETS[name]
        torch.manual_seed(0)
        file = pathlib.Path(a.o).expanduser() / name
        export(build(library, net, weights, a.untrained), size, file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"{digest}  {file}", flush=True)


if __name__ == "__main__":
    main()
