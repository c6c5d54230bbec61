"""Nets of the shapes that everybody measures with, for the benchmark of gradients:
random weights, 1000 classes, 224 x 224 pixels.

    python shapes.py FOLDER         writes FOLDER/NET.onnx for every net that isn't there
    python shapes.py time NET B T   measures PyTorch with batches of B on T threads

The files have opset 17, a free batch and BatchNormalization apart, as nets that are
to be explained should. The second form reads lines: for every "gradient" and every
"forward" it answers with the seconds that one run took. A gradient is that of the
sum of the logits of class 0 with respect to the images; nothing else asks for one.
"""
import sys
import time
from pathlib import Path

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    sys.exit("shapes.py: this needs PyTorch, which Python doesn't find")


def block(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    """He et al. 2016; the stride of a bottleneck is that of its 3 x 3 layer."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        self.main = nn.Sequential(
            block(inputs, width, 1), block(width, width, 3, stride), block(width, outputs, 1, act=None),
        ) if bottleneck else nn.Sequential(block(inputs, width, 3, stride), block(width, width, 3, act=None))
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else block(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        return F.relu(self.main(x) + self.short(x))


def resnet(depths, bottleneck):
    layers, inputs = [block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            width = 64 << stage
            layers.append(Residual(inputs, width, 2 if stage > 0 and i == 0 else 1, bottleneck))
            inputs = 4 * width if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Inverted(nn.Module):
    """Sandler et al. 2018."""

    def __init__(self, inputs, outputs, stride, grow):
        super().__init__()
        wide = inputs * grow
        self.same = stride == 1 and inputs == outputs
        self.main = nn.Sequential(
            *([block(inputs, wide, 1, act=nn.ReLU6)] if grow > 1 else []),
            block(wide, wide, 3, stride, groups=wide, act=nn.ReLU6), block(wide, outputs, 1, act=None))

    def forward(self, x):
        return x + self.main(x) if self.same else self.main(x)


def mobilenet_v2():
    layers, inputs = [block(3, 32, 3, 2, act=nn.ReLU6)], 32
    for grow, outputs, depth, stride in [
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(depth):
            layers.append(Inverted(inputs, outputs, stride if i == 0 else 1, grow))
            inputs = outputs
    return nn.Sequential(*layers, block(inputs, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Fire(nn.Module):
    """Iandola et al. 2016."""

    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.one, self.three = nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet():
    """Version 1.1."""
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool(),
        Fire(128, 32, 128), Fire(256, 32, 128), pool(), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256),
        Fire(512, 64, 256), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Attend(nn.Module):
    """Vaswani et al. 2017, normalised in front as in Dosovitskiy et al. 2021."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, width=768, depth=12, heads=12, patch=16, size=224):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.Sequential(*[Attend(width, heads, 4 * width) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


NETS = {
    "resnet18": lambda: resnet([2, 2, 2, 2], False),
    "resnet50": lambda: resnet([3, 4, 6, 3], True),
    "mobilenet_v2": mobilenet_v2,
    "squeezenet": squeezenet,
    "vit_b_16": ViT,
}


def make(name):
    torch.manual_seed(1)
    net = NETS[name]().eval().requires_grad_(False)
    for m in net.modules():
        if isinstance(m, nn.Conv2d):  # so that half of the rectifiers pass, in every layer
            nn.init.kaiming_normal_(m.weight, mode="fan_in")
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    return net


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in NETS:
        path = folder / f"{name}.onnx"
        if path.exists():
            continue
        part = path.with_suffix(".part")
        torch.onnx.export(
            make(name), (torch.zeros(2, 3, 224, 224),), str(part), dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["logits"],
            dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})
        part.rename(path)


def measure(name, batch, threads):
    torch.set_num_threads(threads)
    net = make(name)
    x = torch.randn(batch, 3, 224, 224)
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        if line.strip() == "gradient":
            image = x.clone().requires_grad_()
            torch.autograd.grad(net(image)[:, 0].sum(), image)
        else:
            with torch.inference_mode():
                net(x)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "time":
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        write(Path(sys.argv[1]))
