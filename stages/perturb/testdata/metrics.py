"""What metrics of maps cost in PyTorch, for the benchmark of metrics.

    python metrics.py FOLDER         writes FOLDER/resnet18_32.onnx, for 32 x 32 pixels, if it isn't there
    python metrics.py time NET STEPS THREADS   answers questions on stdin, a line each

A question is "METRIC official" or "METRIC batched", or "METRIC quantus" or "METRIC captum", an answer the seconds
and the processor's seconds that one image took, and a remark. Images and maps are random, and the time for these
isn't counted; curves have STEPS steps of equal size.

"official" computes as the authors' code does, in our own words: a curve copies the image on the CPU at every
step, sets the step's pixels by index, and classifies the copies fifty at a time; RISE and MAS are two codes
that share nothing; ROAD solves a sparse system for each share; PIC interpolates each channel by itself, and
classifies image by image; GAE masks, and explains the masked images, one by one.

"batched" is how one would write it in PyTorch for speed: in inference mode, a curve's images are one
torch.where a batch, over pixels whose rank is below the step's count, with nothing copied; the batch is the
fastest of 8, 16 and 50; RISE and MAS read the same curves. ROAD's systems of all shares and channels are one
conjugate gradient over a tensor, the weights a convolution. PIC triangulates once a step for all channels, and
classifies all steps at once. GAE takes both sequences, and all twenty images of a method, as one batch.

"quantus" and "captum" call these libraries with their defaults, or with the number of samples that runexp's stage
has; Quantus gets IMAGES images at once, captum one image and batches of BATCH perturbed ones. Where a default would
take hours, a part of its steps is measured, and the remark has the factor.
"""
import io
import math
import sys
import time
from pathlib import Path

try:
    import torch
    from torch.nn import functional as F
except ImportError:
    sys.exit("metrics.py: this needs PyTorch, which Python doesn't find")
try:
    import numpy as np
    from PIL import Image
    from scipy.interpolate import LinearNDInterpolator, griddata
    from scipy.ndimage import gaussian_filter
    from scipy.sparse import csc_matrix, lil_matrix
    from scipy.sparse.linalg import spsolve
except ImportError as e:
    sys.exit(f"metrics.py: this needs NumPy, SciPy and Pillow: {e}")

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "experiments/quickstart"), str(ROOT / "stages/internal/program/testdata")]
import nets  # noqa: E402
import shapes  # noqa: E402

IMAGES, BATCH = 16, 16
SHARES = .1, .2, .3, .4, .5, .7, .9
THRESHOLDS = .005, .01, .02, .03, .04, .05, .07, .10, .13, .21, .34, .5, .75
NEIGHBOURS = [(dy, dx, 1 / 12 if dy and dx else 1 / 6) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
STATES = 10


def make(name):
    """The net called so, and the side of its images."""
    if name in shapes.NETS:
        return shapes.make(name), 224
    if name == "resnet18_32":
        return shapes.make("resnet18"), 32
    torch.manual_seed(1)
    return nets.NETS[name]().eval().requires_grad_(False), 64


def blur_kernel():
    impulse = np.zeros((11, 11))
    impulse[5, 5] = 1
    return torch.from_numpy(gaussian_filter(impulse, 11)).float().expand(3, 1, 11, 11)


def trapezoid(y):
    return (y.sum() - (y[0] + y[-1]) / 2) / (len(y) - 1)


def mas(curve, density, insertion):
    low, high = (curve[0], curve[-1]) if insertion else (curve[-1], curve[0])
    response = np.clip((curve - low) / (high - low), 0, 1)
    response = np.maximum.accumulate(response) if insertion else np.minimum.accumulate(response)
    penalty = np.abs(density - response)
    corrected = np.clip(response - penalty if insertion else response + penalty, 0, 1)
    corrected = (corrected - corrected.min()) / (corrected.max() - corrected.min())
    return trapezoid(response), trapezoid(corrected)


class Bench:
    def __init__(self, name, steps):
        self.net, self.side = make(name)
        self.steps, self.count = steps, self.side ** 2
        self.step = math.ceil(self.count / steps)
        self.kernel, self.batch = blur_kernel(), 8
        self.fresh()
        times = {}
        with torch.inference_mode():
            for batch in (8, 16, 50, 8, 16, 50):  # the first time takes longer
                x = torch.randn(batch, 3, self.side, self.side)
                self.net(x)
                start = time.perf_counter()
                self.net(x)
                times[batch] = (time.perf_counter() - start) / batch
        self.batch = min(times, key=times.get)

    def fresh(self):
        self.image, self.map = torch.rand(1, 3, self.side, self.side), torch.rand(self.side, self.side)

    def classify(self, images, target):
        return torch.cat([self.net(b).softmax(1)[:, target] for b in images.split(self.batch)])

    # Curves by pixel.

    def official_curve(self, start, finish, order, target):
        rows, waiting, image = [], [], start.clone()
        for k in range(self.steps + 1):
            if k > 0:
                image = image.clone()
                pixels = order[self.step * (k - 1):self.step * k]
                image.numpy().reshape(3, -1)[:, pixels] = finish.numpy().reshape(3, -1)[:, pixels]
            waiting.append(image)
            if len(waiting) == 50 or k == self.steps:
                rows += self.net(torch.cat(waiting)).softmax(1)[:, target].tolist()
                waiting = []
        return np.array(rows)

    def official_both(self, score):
        """Insertion and deletion by one of the codes."""
        x = self.image
        target = self.net(x).argmax(1).item()
        order = np.flip(np.argsort(self.map.numpy().reshape(-1)))
        blurred, zero = F.conv2d(x, self.kernel, padding=5, groups=3), torch.zeros_like(x)
        for insertion, start, finish in ((True, blurred, x), (False, x, zero)):
            curve = self.official_curve(start, finish, order, target)
            if not score:
                trapezoid(curve)
                continue
            density, values = [0. if insertion else 1.], self.map.numpy().reshape(-1)
            total = values.sum()
            for k in range(self.steps):
                part = values[order[self.step * k:self.step * (k + 1)]].sum() / total
                density.append(density[-1] + part if insertion else density[-1] - part)
            mas(curve, np.array(density), insertion)

    def mas_rise_official(self):
        self.official_both(False)
        start = time.perf_counter()
        self.official_both(True)
        return f"of these {time.perf_counter() - start:.3g} s in the code of MAS alone"

    def ranks(self):
        order = self.map.reshape(-1).argsort(descending=True, stable=True)
        ranks = torch.empty_like(order)
        ranks[order] = torch.arange(self.count)
        return order, ranks.view(1, 1, self.side, self.side)

    def batched_curve(self, start, finish, ranks, counts, target):
        counts = counts.view(-1, 1, 1, 1)
        return torch.cat([self.net(torch.where(ranks < k, finish, start)).softmax(1)[:, target]
                          for k in counts.split(self.batch)]).double().numpy()

    @torch.inference_mode()
    def mas_rise_batched(self):
        x = self.image
        target = self.net(x).argmax(1).item()
        order, ranks = self.ranks()
        counts = torch.arange(self.steps + 1) * self.step
        blurred = F.conv2d(x, self.kernel, padding=5, groups=3)
        shares = torch.cat([torch.zeros(1), self.map.reshape(-1)[order].cumsum(0)]).double()
        density = (shares / shares[-1])[counts.clamp(max=self.count)].numpy()
        for insertion, start, finish in ((True, blurred, x), (False, x, torch.zeros(1, 1, 1, 1))):
            curve = self.batched_curve(start, finish, ranks, counts, target)
            trapezoid(curve)
            mas(curve, density if insertion else 1 - density, insertion)
        return f"batch {self.batch}"

    def ablation_official(self):
        steps, step = self.steps, self.step
        self.steps, self.step = 10, math.ceil(self.count / 10)
        target = self.net(self.image).argmax(1).item()
        order = np.flip(np.argsort(self.map.numpy().reshape(-1)))
        trapezoid(self.official_curve(self.image, torch.zeros_like(self.image), order, target))
        self.steps, self.step = steps, step
        return "there is no code: as for RISE"

    @torch.inference_mode()
    def ablation_batched(self):
        target = self.net(self.image).argmax(1).item()
        counts = (torch.arange(11) * self.count / 10).round()
        trapezoid(self.batched_curve(self.image, torch.zeros(1, 1, 1, 1), self.ranks()[1], counts, target))
        return f"batch {self.batch}"

    # ROAD.

    def impute(self, mask):
        """The image with the pixels that the mask leaves out from a sparse solve."""
        flat = self.image.numpy().reshape(3, -1)
        gone = np.flatnonzero(~mask)
        place = np.zeros(self.count, dtype=int)
        place[gone] = np.arange(len(gone))
        a, b, diagonal = lil_matrix((len(gone), len(gone))), np.zeros((len(gone), 3)), np.ones(len(gone))
        for dy, dx, weight in NEIGHBOURS:
            y, x = gone // self.side + dy, gone % self.side + dx
            inside = (y >= 0) & (x >= 0) & (y < self.side) & (x < self.side)
            rows, other = np.flatnonzero(inside), (y * self.side + x)[inside]
            kept = mask[other]
            b[rows[kept]] -= weight * flat[:, other[kept]].T
            a[rows[~kept], place[other[~kept]]] = weight
            diagonal[~inside] -= weight
        a[np.arange(len(gone)), np.arange(len(gone))] = -diagonal
        out = self.image.clone()
        out.view(3, -1)[:, gone] = torch.tensor(spsolve(csc_matrix(a), b), dtype=torch.float).T
        out.view(3, -1)[:, gone] += 0.01 * torch.randn(3, len(gone))
        return out

    def road_official(self):
        target = self.net(self.image).argmax(1).item()
        order = self.map.reshape(-1).argsort(descending=True).numpy()
        images = [self.image]
        for share in SHARES:
            mask = np.ones(self.count, dtype=bool)
            mask[order[:int(self.count * share)]] = False
            images.append(self.impute(mask))
        self.net(torch.cat(images)).softmax(1)[:, target].tolist()
        return ""

    @torch.inference_mode()
    def road_batched(self):
        target = self.net(self.image).argmax(1).item()
        kernel = torch.zeros(1, 1, 3, 3, dtype=torch.double)
        for dy, dx, weight in NEIGHBOURS:
            kernel[0, 0, 1 + dy, 1 + dx] = weight
        counts = torch.tensor([int(self.count * s) for s in SHARES]).view(-1, 1, 1, 1)
        gone = (self.ranks()[1] < counts).double().repeat_interleave(3, 0)
        x = self.image.double().view(3, 1, self.side, self.side).repeat(len(SHARES), 1, 1, 1)
        diagonal = F.conv2d(torch.ones(1, 1, self.side, self.side, dtype=torch.double), kernel, padding=1)
        dot = lambda u, v: (u * v).sum((1, 2, 3), keepdim=True)
        fill = x.mean((2, 3), keepdim=True) * gone  # the first guess
        r = gone * (F.conv2d(x * (1 - gone) + fill, kernel, padding=1) - diagonal * fill)
        limit = 1e-12 * dot(r, r)
        z = r / diagonal
        p, rz, rounds = z, dot(r, z), 0
        while (dot(r, r) > limit).any() and rounds < 1000:
            ap = gone * (diagonal * p - F.conv2d(p, kernel, padding=1))
            alpha = rz / dot(p, ap)
            fill, r = fill + alpha * p, r - alpha * ap
            z = r / diagonal
            rz, last = dot(r, z), rz
            p, rounds = z + rz / last * p, rounds + 1
        images = (x * (1 - gone) + fill + 0.01 * torch.randn_like(x) * gone).float()
        images = torch.cat([self.image, images.view(-1, 3, self.side, self.side)])
        self.classify(images, target).tolist()
        return f"{rounds} rounds of conjugate gradient"

    # PIC.

    def pic_masks(self, values):
        random = np.zeros(self.count, dtype=bool)
        random[np.random.default_rng(1).choice(self.count, int(.01 * self.count), replace=False)] = True
        random = random.reshape(self.side, self.side)
        random[[0, 0, -1, -1], [0, -1, 0, -1]] = True
        return [random] + [random | (values >= np.quantile(values, 1 - t)) for t in THRESHOLDS]

    @staticmethod
    def webp(pixels):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "webp", lossless=True, quality=100)
        return len(out.getvalue())

    @staticmethod
    def tensor(pixels):
        return torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255

    def pic(self, fill, classify):
        pixels = (self.image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        target = self.net(self.image).argmax(1).item()
        images = [fill(pixels, m) for m in self.pic_masks(self.map.numpy())] + [pixels]
        [self.webp(i) for i in images]
        classify(images, target)
        return ""

    def pic_official(self):
        ys, xs = np.mgrid[:self.side, :self.side]

        def fill(pixels, mask):
            out = np.empty_like(pixels)
            for c in range(3):
                values = pixels[..., c]
                out[..., c] = np.round(griddata(np.argwhere(mask), values[mask], (ys, xs), fill_value=values.mean()))
            return out
        return self.pic(fill, lambda images, c: [self.net(self.tensor(i)).softmax(1)[0, c].item() for i in images])

    @torch.inference_mode()
    def pic_batched(self):
        def fill(pixels, mask):
            out = pixels.copy()
            out[~mask] = np.round(LinearNDInterpolator(np.argwhere(mask), pixels[mask].astype(float))(np.argwhere(~mask)))
            return out
        return self.pic(fill, lambda images, c: self.classify(torch.cat([self.tensor(i) for i in images]), c).tolist())

    # GAE of saliency maps: masking, twenty maps, the mosaic's forward pass.

    def gradient(self, x, target):
        x = x.clone().requires_grad_()
        out = self.net(x)[:, target]
        return torch.autograd.grad(out.sum(), x)[0], out.detach()

    def gae(self, together):
        target = self.net(self.image).argmax(1).item()
        self.net(F.interpolate(self.image, scale_factor=.5).repeat(1, 1, 2, 2)).softmax(1)
        split = (lambda x: [x]) if together else (lambda x: x.split(1))
        take = lambda x: torch.cat([self.gradient(b, target)[0] for b in split(x)])
        x, size, states = self.image.repeat(2, 1, 1, 1), self.image.numel(), []
        for k in range(1, STATES + 1):
            states.append(x)
            impact = (x * take(x)).abs().view(2, -1)
            if k < STATES:
                count = int(k / STATES * size)
                x = x.clone().view(2, -1)
                x[0, impact[0].topk(count).indices] = 0
                x[1, impact[1].topk(count, largest=False).indices] = 0
                x = x.view(2, 3, self.side, self.side)
        mosaic = F.interpolate(self.image, scale_factor=.5).repeat(1, 1, 2, 2)
        everything = torch.cat([states[0][:1], *states[1:], mosaic])
        maps = take(everything).relu().flatten(1) if not together else torch.cat(
            [self.gradient(b, target)[0] for b in everything.split(self.batch)]).relu().flatten(1)
        maps = maps / (maps.amax(1, keepdim=True) + 1e-9)
        first, rest = maps[:1], maps[1:-1]
        dice = (first - rest).abs().sum(1) / (first.abs().sum(1) + rest.abs().sum(1) + 1e-9)
        dice.tolist()
        return ""

    def gae_official(self):
        return self.gae(False)

    def gae_batched(self):
        return self.gae(True)

    # Metrics of random subsets, by Quantus and captum.

    def by_quantus(self, name, images=IMAGES, factor=1, **options):
        """The cost of an image by a metric of Quantus, of as many images at once."""
        import quantus
        if not hasattr(np, "trapz"):
            np.trapz = np.trapezoid  # which newer NumPys have no longer, and Quantus calls
        x = torch.rand(images, 3, self.side, self.side)
        maps = np.random.default_rng(0).random((images, 1, self.side, self.side))
        metric = getattr(quantus, name)(disable_warnings=True, display_progressbar=False, **options)
        y = self.net(x).argmax(1).numpy()
        start, before = time.perf_counter(), time.process_time()
        metric(model=self.net, x_batch=x.numpy(), y_batch=y, a_batch=maps, channel_first=True, device="cpu")
        spent = time.perf_counter() - start, time.process_time() - before
        text = ", ".join(f"{k}={v}" for k, v in options.items())
        return *(v * factor / images for v in spent), f"{name}({text})" + (f", times {factor}" if factor > 1 else "")

    def faithfulness_correlation_quantus(self):
        return self.by_quantus("FaithfulnessCorrelation")

    def faithfulness_estimate_quantus(self):
        return self.by_quantus("FaithfulnessEstimate", factor=64, features_in_step=64)

    def infidelity_quantus(self):
        return self.by_quantus("Infidelity")

    def infidelity_captum(self):
        from captum.metrics import infidelity
        target = self.net(self.image).argmax(1)
        maps = self.map.expand(1, 3, -1, -1).contiguous()

        def perturb(inputs):
            keep = torch.ones(len(inputs), 1, self.side, self.side)
            for k, (y, x) in enumerate(torch.randint(self.side // 4, (len(inputs), 2)).tolist()):
                keep[k, :, 4 * y:4 * y + 4, 4 * x:4 * x + 4] = 0
            return inputs * (1 - keep), inputs * keep
        infidelity(self.net, perturb, self.image, maps, target=target, n_perturb_samples=256, max_examples_per_batch=BATCH)
        return "256 squares of 4 pixels"

    def sensitivity_n_quantus(self):
        return self.by_quantus("SensitivityN", factor=64, features_in_step=64)

    def monotonicity_quantus(self):
        return self.by_quantus("Monotonicity", factor=64, features_in_step=64)

    def monotonicity_correlation_quantus(self):
        return self.by_quantus("MonotonicityCorrelation", images=4, factor=640, features_in_step=64, nr_samples=10)

    def non_sensitivity_quantus(self):
        return self.by_quantus("NonSensitivity", factor=64, features_in_step=64)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("resnet18_32",):
        path = folder / f"{name}.onnx"
        if path.exists():
            continue
        net, side = make(name)
        part = path.with_suffix(".part")
        torch.onnx.export(
            net, (torch.zeros(2, 3, side, side),), str(part), dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=["logits"],
            dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})
        part.rename(path)


def main():
    torch.set_num_threads(int(sys.argv[4]))
    bench = Bench(sys.argv[2], int(sys.argv[3]))
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        run = getattr(bench, "_".join(line.replace("-", "_").split()), None)
        if run is None:
            print("it doesn't have this metric", flush=True)
            continue
        bench.fresh()
        start, before = time.perf_counter(), time.process_time()
        told = run()
        if isinstance(told, str):
            told = time.perf_counter() - start, time.process_time() - before, told
        print(*told, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "time":
        main()
    else:
        write(Path(sys.argv[1]))
