"""Trains one net of the tasks and writes it as ONNX.

    python train.py NET DATA OUT.onnx [--epochs N] [--test DATA]

NET is segmenter, detector, tagger or embedder. DATA is a folder that `runexp get`
wrote of draws.yaml: of two objects, but for the embedder, which is trained on one.
Weights start from the quickstart's resnet.onnx where it has them. With the same
version of PyTorch on the same machine, the same call gives the same net.

README.md beside this file has the calls that made the nets in this folder. Needs
torch, numpy, onnx and, for --test, onnxruntime.
"""

import argparse
import math
import pathlib
import time
import warnings

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from heads import NETS

START = pathlib.Path(__file__).parents[1] / "quickstart" / "resnet.onnx"
HELD_OUT = [3, 8]  # classes whose images and texts the embedder never sees: striped square, dotted triangle


class Draws:
    """Images, and for each of their objects its class and mask."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        images = np.load(folder / "images.npy", mmap_mode="r")
        labels = np.load(folder / "labels.npy").reshape(-1)
        masks = np.load(folder / "masks.npy", mmap_mode="r").reshape(len(images), 64, 64)
        each = 2 if np.array_equal(images[0], images[1]) else 1
        self.images = images[::each]
        self.labels = torch.from_numpy(labels).reshape(-1, each)
        self.masks = torch.from_numpy(np.array(masks) > 0).reshape(-1, each, 64, 64)

    def __len__(self):
        return len(self.images)

    def batch(self, picked):
        x = (torch.from_numpy(np.array(self.images[picked.numpy()])).float() / 255 - 0.5) / 0.5
        return x, self.labels[picked], self.masks[picked]


def boxes(masks):
    """The boxes of masks [..., 64, 64]: left, top, right and bottom in pixels."""
    at = torch.arange(64.0)
    sides = []
    for taken in (masks.any(-2), masks.any(-1)):  # columns, rows
        sides.append((torch.where(taken, at, 64).amin(-1), torch.where(taken, at + 1, 0).amax(-1)))
    return torch.stack([sides[0][0], sides[1][0], sides[0][1], sides[1][1]], -1)


def overlap(a, b):
    """Intersection over union of boxes."""
    extent = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    shared = extent.prod(-1)
    return shared / ((a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - shared)


def outlines(labels, masks):
    """The outline of each pixel, 0 for the background."""
    return ((1 + labels // 3)[:, :, None, None] * masks).amax(1)


def places(box):
    """The rows of the detector in which the centres of boxes are."""
    centre = ((box[..., :2] + box[..., 2:]) / 16).long().clamp(0, 7)
    return centre[..., 1] * 8 + centre[..., 0]


def segmenter_loss(net, x, labels, masks):
    weight = torch.tensor([0.5, 1, 1, 1, 1])
    return nn.functional.cross_entropy(net(x), outlines(labels, masks), weight)


def detector_loss(net, x, labels, masks):
    rows, box = net(x), boxes(masks)
    at = places(box)
    there = torch.zeros(rows.shape[:2]).scatter_(1, at, 1)
    picked = rows.gather(1, at[:, :, None].expand(-1, -1, 9))
    objectness = nn.functional.binary_cross_entropy(rows[:, :, 4], there, weight=1 + 7 * there)
    logs = torch.log(picked[:, :, 5:] + 1e-7).flatten(0, 1)
    classes = nn.functional.nll_loss(logs, (labels // 3).flatten())
    distance = (picked[:, :, :4] - box).abs().mean() / 16
    return 4 * objectness + classes + distance + (1 - overlap(picked[:, :, :4], box)).mean()


def tagger_loss(net, x, labels, masks):
    tags, disc, covered = net(x)
    there = torch.zeros(tags.shape).scatter_(1, labels, 1)
    return (12 * nn.functional.binary_cross_entropy_with_logits(tags, there)
            + nn.functional.binary_cross_entropy_with_logits(disc[:, 0], (labels < 3).any(1).float())
            + nn.functional.smooth_l1_loss(covered[:, 0], percent(masks)) / 5)


def percent(masks):
    return 100 * masks.any(1).float().mean((1, 2))


def embedder_loss(net, x, labels, masks):
    seen = [k for k in range(12) if k not in HELD_OUT]
    keep = torch.isin(labels[:, 0], torch.tensor(seen))
    images = nn.functional.normalize(net(x[keep]), dim=1)
    texts = nn.functional.normalize(net.texts()[seen], dim=1)
    number = torch.tensor([seen.index(k) for k in labels[keep, 0].tolist()])
    return nn.functional.cross_entropy(10 * images @ texts.T, number, label_smoothing=0.05)


LOSSES = {"segmenter": segmenter_loss, "detector": detector_loss, "tagger": tagger_loss,
          "embedder": embedder_loss}
EPOCHS = {"segmenter": 3, "detector": 2, "tagger": 8, "embedder": 2}


def start(net):
    """Sets first weights: those of the quickstart's net, or He's."""
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear, nn.ConvTranspose2d)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    found = {i.name: numpy_helper.to_array(i) for i in onnx.load(START).graph.initializer}
    own = net.backbone.state_dict()
    net.backbone.load_state_dict({k: torch.tensor(np.array(found[k])) if k in found else v
                                  for k, v in own.items()})


def train(net, name, draws, epochs, seed, after):
    """Trains with AdamW, a warm-up and a cosine."""
    draw = torch.Generator().manual_seed(seed)
    batch, rate = 64, 3e-3
    steps = epochs * (len(draws) // batch)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / (0.05 * steps), 0.5 + 0.5 * math.cos(math.pi * s / steps)))
    for epoch in range(1, epochs + 1):
        net.train()
        began, losses = time.time(), []
        for picked in torch.randperm(len(draws), generator=draw)[: len(draws) // batch * batch].split(batch):
            x, labels, masks = draws.batch(picked)
            x = x[:, torch.randperm(3, generator=draw)]
            x = x * (0.9 + 0.2 * torch.rand(len(x), 1, 1, 1, generator=draw))
            if torch.rand((), generator=draw) < 0.5:
                x, masks = x.flip(3), masks.flip(3)
            loss = LOSSES[name](net, x, labels, masks)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"{name} epoch {epoch:3d}  loss {np.mean(losses):.4f}  {time.time() - began:.0f} s", flush=True)
        after()


def export(net, path):
    """Writes the net with its batch open, and the embeddings of texts beside it."""
    net.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (torch.zeros(1, 3, 64, 64),), str(path), dynamo=False, opset_version=17,
            input_names=["input"], output_names=net.outputs,
            dynamic_axes={name: {0: "N"} for name in ["input", *net.outputs]})
    onnx.checker.check_model(onnx.load(path), full_check=True)
    if hasattr(net, "texts"):
        texts = nn.functional.normalize(net.texts(), dim=1).detach().numpy()
        np.save(path.with_name("texts.npy"), np.ascontiguousarray(texts))
    net.train()


def accuracies(name, path, draws):
    """What README.md lists, of the ONNX file by ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    x, labels, masks = draws.batch(torch.arange(len(draws)))
    out = [torch.from_numpy(v) for v in session.run(None, {"input": x.numpy()})]
    if name == "segmenter":
        got, want = out[0].argmax(1), outlines(labels, masks)
        shares = [((got == k) & (want == k)).sum() / ((got == k) | (want == k)).sum() for k in range(1, 5)]
        return {"right pixels": (got == want).float().mean(),
                "mean IoU of the outlines": torch.stack(shares).mean()}
    if name == "detector":
        rows, box = out[0], boxes(masks)
        best = rows[:, :, 4].topk(2).indices
        picked = rows.gather(1, best[:, :, None].expand(-1, -1, 9))
        fit = overlap(picked[:, :, None, :4], box[:, None])  # [N, detection, object]
        same = picked[:, :, None, 5:].argmax(-1) == labels[:, None] // 3
        return {"objects found, IoU > 0.5 and the right outline": ((fit > 0.5) & same).any(1).float().mean()}
    if name == "tagger":
        there = torch.zeros(out[0].shape).scatter_(1, labels, 1)
        return {"right tags": ((out[0] > 0) == (there > 0)).float().mean(),
                "images with all tags right": ((out[0] > 0) == (there > 0)).all(1).float().mean(),
                "disc or no disc": ((out[1][:, 0] > 0) == (labels < 3).any(1)).float().mean(),
                "mean error of covered, points": (out[2][:, 0] - percent(masks)).abs().mean()}
    texts = torch.from_numpy(np.load(path.with_name("texts.npy")))
    right = (nn.functional.normalize(out[0], dim=1) @ texts.T).argmax(1) == labels[:, 0]
    new = torch.isin(labels[:, 0], torch.tensor(HELD_OUT))
    return {"right of 12 texts, classes of training": right[~new].float().mean(),
            "right of 12 texts, classes held out": right[new].float().mean()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", choices=NETS)
    parser.add_argument("data", help="folder with images.npy, labels.npy and masks.npy")
    parser.add_argument("out", type=pathlib.Path, help="the .onnx file to write")
    parser.add_argument("--epochs", type=int, help="instead of the net's own number")
    parser.add_argument("--test", help="a folder of other draws to measure the written file on")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    net = NETS[args.net]()
    start(net)
    print(f"{args.net}: {sum(p.numel() for p in net.parameters())} weights", flush=True)

    def after():
        export(net, args.out)
        if args.test:
            for what, share in accuracies(args.net, args.out, Draws(args.test)).items():
                print(f"{args.out.name}: {what} {share:.4f}", flush=True)

    train(net, args.net, Draws(args.data), args.epochs or EPOCHS[args.net], args.seed, after)


if __name__ == "__main__":
    main()
