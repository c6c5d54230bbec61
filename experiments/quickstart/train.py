"""Trains one net of the quickstart and writes it as ONNX.

    python train.py NET DATA OUT.onnx [--epochs N] [--keep 1,2,4,8] [--go-on IN.onnx]

NET is vgg, vgg-bn, resnet, vit, vit-16, swin, convnext or mixer. DATA is a folder that
`runexp get` wrote, with images.npy, u8 [N, 3, 64, 64], and labels.npy, i64 [N] or [N, 1]. --keep also
writes the net as it was after the given epochs, as OUT-e01.onnx and so on; --go-on
starts from a net that this script wrote rather than from random weights. With the
same version of PyTorch on the same machine, the same call gives the same net;
elsewhere last bits differ, and so do the weights.

README.md beside this file has the calls that made the nets in this folder. Needs
torch, numpy, onnx and, for --test, onnxruntime.
"""

import argparse
import math
import pathlib
import time
import warnings

import numpy as np
import torch
from torch import nn

from nets import NETS

RECIPES = {  # epochs, batch, learning rate, weight decay
    "vgg": (8, 96, 2e-3, 1e-3),
    "vgg-bn": (4, 96, 4e-3, 1e-2),
    "resnet": (10, 96, 4e-3, 1e-2),
    "vit": (18, 96, 2e-3, 3e-2),
    "vit-16": (30, 96, 2e-3, 3e-2),
    "swin": (12, 96, 2e-3, 3e-2),
    "convnext": (6, 96, 4e-3, 3e-2),
    "mixer": (20, 96, 2e-3, 3e-2),
}


def load(folder):
    """Returns images and labels; the images stay on disk until they're needed."""
    folder = pathlib.Path(folder)
    images = np.load(folder / "images.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy").reshape(-1)
    assert images.dtype == np.uint8 and images.shape == (len(labels), 3, 64, 64), images.shape
    return images, torch.from_numpy(labels)


def normalise(images):
    """Maps u8 pixels to [-1, 1], as the preset `half` of model/onnx does."""
    return (torch.from_numpy(np.array(images)).float() / 255 - 0.5) / 0.5


def vary(x, draw):
    """Turns, mirrors and recolours the images of a batch: none of it changes a
    class. A batch is cut into eight parts and each part gets one variation."""
    parts = []
    for k, part in enumerate(x.chunk(8)):
        part = torch.rot90(part, k % 4, (2, 3))
        if k >= 4:
            part = part.flip(3)
        part = part[:, torch.randperm(3, generator=draw)]
        parts.append(part * (0.85 + 0.3 * torch.rand(len(part), 1, 1, 1, generator=draw)))
    return torch.cat(parts)


def start(net):
    """Sets first weights: He's for what a ReLU follows, small ones in the ViT."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            patches = module.stride[0] >= 8
            nn.init.kaiming_normal_(module.weight, mode="fan_in" if patches else "fan_out",
                                    nonlinearity="linear" if patches else "relu")
        elif isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.5 * math.sqrt(2 / sum(module.weight.shape)) * 1.4)
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.zeros_(module.bias)


def go_on(net, path):
    """Sets weights from a file that export wrote. There the weights of dense
    layers on tokens have lost their names, but not their order."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    found = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    found |= {n.output[0]: found[n.input[0]] for n in graph.node if n.op_type == "Identity" and n.input[0] in found}
    dense = iter([found[n.input[1]].T for n in graph.node if n.op_type == "MatMul" and n.input[1] in found])
    state = {}
    for name, value in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state[name] = value
        else:
            state[name] = torch.tensor(np.array(found[name] if name in found else next(dense)))
    assert next(dense, None) is None, "more weights in the file than in the net"
    net.load_state_dict(state)


def groups(net, decay):
    """Lets weights decay, but not biases, norms, the class token and positions."""
    apart = [p.ndim <= 1 or n.split(".")[-1] in ("token", "positions") for n, p in net.named_parameters()]
    weights = [p for p, a in zip(net.parameters(), apart) if not a]
    others = [p for p, a in zip(net.parameters(), apart) if a]
    return [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0}]


def train(net, images, labels, epochs, batch, rate, decay, seed, after):
    """Trains with AdamW, a warm-up and a cosine; calls after(epoch) each epoch."""
    draw = torch.Generator().manual_seed(seed)
    steps = epochs * (len(labels) // batch)
    optimizer = torch.optim.AdamW(groups(net, decay), lr=rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / (0.05 * steps), 0.5 + 0.5 * math.cos(math.pi * s / steps)))
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    for epoch in range(1, epochs + 1):
        net.train()
        began, right, loss_sum = time.time(), 0, 0.0
        order = torch.randperm(len(labels), generator=draw)[: len(labels) // batch * batch]
        for picked in order.split(batch):
            picked = picked.sort().values
            picked = picked[torch.randperm(batch, generator=draw)]
            y = labels[picked]
            logits = net(vary(normalise(images[picked.numpy()]), draw))
            loss = loss_of(logits, y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            right += (logits.argmax(1) == y).sum().item()
            loss_sum += loss.item() * batch
        print(f"epoch {epoch:3d}  loss {loss_sum / len(order):.4f}  right {right / len(order):.4f}  "
              f"{time.time() - began:.0f} s", flush=True)
        after(epoch)


def export(net, path):
    """Writes the net with its batch open and its BatchNormalization nodes apart:
    PRESERVE keeps the exporter from folding them into the convolutions."""
    import onnx

    net.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (torch.zeros(1, 3, 64, 64),), str(path), dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["logits"],
            dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    norms = [n for n in model.graph.node if n.op_type == "BatchNormalization"]
    assert len(norms) == sum(isinstance(m, nn.BatchNorm2d) for m in net.modules())
    assert all(a.i == 0 for n in norms for a in n.attribute if a.name == "training_mode")
    net.train()


def test(path, folder):
    """Prints the share that the ONNX file gets right, by ONNX Runtime."""
    import onnxruntime

    images, labels = load(folder)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    right = 0
    for i in range(0, len(labels), 100):
        logits = session.run(["logits"], {"input": normalise(images[i:i + 100]).numpy()})[0]
        right += int((logits.argmax(1) == labels[i:i + 100].numpy()).sum())
    print(f"{path}: {right} of {len(labels)} right, {right / len(labels):.2%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net", choices=NETS)
    parser.add_argument("data", help="folder with images.npy and labels.npy")
    parser.add_argument("out", type=pathlib.Path, help="the .onnx file to write")
    parser.add_argument("--epochs", type=int, help="instead of the net's own number")
    parser.add_argument("--keep", default="", help="epochs after which to write the net too, such as 1,2,4,8")
    parser.add_argument("--go-on", help="a net to start from, as this script wrote it")
    parser.add_argument("--test", help="a folder of other draws to measure the written files on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    images, labels = load(args.data)
    net = NETS[args.net]()
    start(net)
    if args.go_on:
        go_on(net, args.go_on)
    epochs, batch, rate, decay = RECIPES[args.net]
    epochs = args.epochs or epochs
    print(f"{args.net}: {sum(p.numel() for p in net.parameters())} weights, {len(labels)} images", flush=True)
    kept = {int(e) for e in args.keep.split(",") if e}

    def after(epoch):
        if epoch in kept:
            path = args.out.with_name(f"{args.out.stem}-e{epoch:02d}.onnx")
            export(net, path)
            if args.test:
                test(path, args.test)

    train(net, images, labels, epochs, batch, rate, decay, args.seed, after)
    export(net, args.out)
    if args.test:
        test(args.out, args.test)


if __name__ == "__main__":
    main()
