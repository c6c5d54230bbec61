"""Measures PyTorch and captum on a card, as card speed measures ours: the same nets with
random weights, the same numbers of evaluations, float32 without TF32's shorter mantissa.

    python torch_times.py NET TASK SECONDS BATCHES DEVICE

It prints "start BATCH" and "rate BATCH IMAGES/S"; report.go has the other lines. What captum
has is captum's: integrated gradients and LRP. The others are batches that fill the card.
"""
import sys
import time
from unittest.mock import MagicMock

import torch
from torch.nn import functional as F

for pictures in "matplotlib", "matplotlib.colors", "captum.attr._utils.visualization":
    sys.modules[pictures] = MagicMock()  # a machine may lack what captum draws with
from captum import attr  # noqa: E402
from captum.attr._utils.lrp_rules import EpsilonRule  # noqa: E402

import shapes  # noqa: E402

LEAST_SECONDS, MOST_IMAGES = 1.5, 4096
IG_STEPS, CURVE_STEPS, RISE_MASKS, CELLS = 50, 224, 1000, 7
SMALL = {
    "resnet_tiny": lambda: shapes.resnet([1, 1, 1, 1], True),
    "vit_tiny": lambda: shapes.ViT(16, 2, 2, 8, 32),
}


def gradient(net, x, batch):
    for rows in x.split(batch):
        image = rows.clone().requires_grad_()
        torch.autograd.grad(net(image)[:, 0].sum(), image)[0].cpu()


def ig(net, x, batch):
    attr.IntegratedGradients(net).attribute(x, target=0, n_steps=IG_STEPS, internal_batch_size=batch).cpu()


def lrp(net, x, batch):
    for rows in x.split(batch):
        for module in net.modules():  # captum has no rule for them, and removes it afterwards
            if isinstance(module, (torch.nn.Flatten, torch.nn.Identity)):
                module.rule = EpsilonRule()
        attr.LRP(net).attribute(rows.clone().requires_grad_(), target=0).cpu()


@torch.inference_mode()
def deletion(net, x, batch):
    side = x.shape[-1]
    counts = torch.linspace(0, side * side, CURVE_STEPS + 1, device=x.device).round().view(-1, 1, 1, 1)
    for image in x.split(1):
        ranks = torch.rand(side * side, device=x.device).argsort().argsort().view(1, 1, side, side)
        torch.cat([net(torch.where(ranks < k, 0, image)).softmax(1)[:, 0] for k in counts.split(batch)]).cpu()


@torch.inference_mode()
def rise(net, x, batch):
    side, cell = x.shape[-1], -(-x.shape[-1] // CELLS)
    for image in x.split(1):
        total = torch.zeros(side, side, device=x.device)
        for n in torch.arange(RISE_MASKS).split(batch):
            grid = (torch.rand(len(n), 1, CELLS, CELLS, device=x.device) < 0.5).float()
            wide = F.interpolate(grid, size=(CELLS + 1) * cell, mode="bilinear", align_corners=False)
            dy, dx = torch.randint(cell, (2,)).tolist()
            masks = wide[..., dy:dy + side, dx:dx + side]
            response = net(image * masks).softmax(1)[:, 0]
            total += torch.einsum("n,nhw->hw", response, masks[:, 0])
        total.cpu()


TASKS = {"gradient": (gradient, 1), "ig-50": (ig, IG_STEPS), "lrp": (lrp, 1),
         "deletion": (deletion, CURVE_STEPS + 1), "rise": (rise, RISE_MASKS)}


def say(*words):
    print(*words, flush=True)


def measure(net, task, batch, side, device, end):
    run, rows = TASKS[task]
    count = -(-batch // rows)

    def seconds():
        x = torch.rand(count, 3, side, side)
        start = time.perf_counter()
        run(net, x.to(device), batch)  # which ends on the host
        return time.perf_counter() - start

    seconds()
    while True:
        say("start", batch)
        took = seconds()
        if took >= LEAST_SECONDS or count >= MOST_IMAGES or time.perf_counter() > end:
            return say("rate", batch, f"{count / took:.4g}")
        count = min(count * (int(1.2 * LEAST_SECONDS / took) + 1), max(MOST_IMAGES, count))


def main():
    name, task, limit, batches, device = sys.argv[1:]
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    if device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(1)
    net = SMALL[name]().eval().requires_grad_(False) if name in SMALL else shapes.make(name)
    side = 32 if name in SMALL else 224
    net = net.to(device)
    end = time.perf_counter() + float(limit)
    for i, batch in enumerate(map(int, batches.split(","))):
        if i > 0 and time.perf_counter() > end:
            say("note its time was over before batch", batch)
            break
        try:
            measure(net, task, batch, side, device, end)
        except Exception as e:
            say("failed", batch, " ".join(str(e).split())[:300])
            if device != "cpu":
                torch.cuda.empty_cache()


main()
