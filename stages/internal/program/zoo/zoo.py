"""Nets of every family, exported to ONNX, with the derivatives that they have.

    python zoo.py FOLDER [NET...]

writes to FOLDER for each net: NET.trace.onnx and NET.dynamo.onnx, by PyTorch's two
exporters; NET.image.npy, an image; NET.gradient.npy, the derivative of a class with
respect to it by autograd in double precision, rounded; and NET.json, what is known besides.
Where passes forwards contradict that derivative along some directions, NET.directions.npy
has these and NET.json the slopes, which are the reference then. NET.relevance.npy is the relevance of
LRP-0, by autograd too; see detached.py.
Needs torch, torchvision, timm, transformers, onnx and onnxscript; fetches nothing. A net that is
there already is left. JOBS is the number of processes, STEPS which of the steps
"reference relevance trace dynamo" are taken.
"""
import copy
import json
import logging
import multiprocessing
import os
import sys
import time
import traceback
import warnings
import zlib
from unittest import mock

import numpy as np
import torch

from detached import relevance
from redraw import redraw

GAINS = (2**0.5, 1, 0.5**0.5, 0.25)  # of convolutions
DRAWS = 3  # images to choose from
TREMBLES = 2
SMOOTH = 3e-5
TARGET = 3
DIRECTIONS = 16
STEP = 1e-6  # of differences in double precision
VALUES = {"timm/iformer_t": ["sigmoid"]}  # of LRP: both factors of its products pass sigmoids, so that neither is a gate


def nets():
    """All nets by name: size of the image, and what builds it."""
    import subset_nets
    import timm_nets
    import torchvision_nets
    import transformers_nets

    out = {"torchvision/" + k: v for k, v in torchvision_nets.NETS.items()}
    out.update({"timm/" + k: v for k, v in timm_nets.NETS.items()})
    out.update({"transformers/" + k: v for k, v in transformers_nets.NETS.items()})
    out.update({"subset/" + k: v for k, v in subset_nets.NETS.items()})
    return out


def logits(net, image):
    """What a net says of an image. Casts to single precision within it keep double."""
    with mock.patch.object(torch.Tensor, "float", lambda t, **_: t.to(image.dtype)):
        return net(image)


def derivative(net, image, target):
    x = image.clone().requires_grad_()
    y = logits(net, x)
    y[0, target].backward()
    return y.detach()[0].double().numpy(), x.grad[0].double().numpy()


def tremble(net, image, gradient, seed):
    """How far the derivative moves, at most, when all weights move by a millionth: by
    little, but where a kink lies within rounding."""
    worst = 0
    for k in range(TREMBLES):
        g = torch.Generator().manual_seed(seed + k)
        moved = copy.deepcopy(net)
        for p in moved.parameters():
            p.mul_(1 + 1e-6 * torch.randn(p.shape, generator=g, dtype=p.dtype))
        worst = max(worst, distance(derivative(moved, image, TARGET)[1], gradient))
    return worst


def slopes(net, image, directions):
    """The derivatives along directions, each by one pass forwards, or by differences for
    a net with an operator that has no such derivative."""
    f = lambda x: logits(net, x)[0, TARGET]
    try:
        return np.array([torch.func.jvp(f, (image,), (d[None],))[1].item() for d in directions])
    except (NotImplementedError, RuntimeError):
        with torch.no_grad():
            return np.array([((f(image + STEP * d) - f(image - STEP * d)) / (2 * STEP)).item() for d in directions])


def contradicted(name, known, image, gradient):
    """Holds the derivative by a pass backwards against those by passes forwards along
    some directions. Where they differ, returns the directions and notes these slopes,
    which are the reference then: finite differences agree with them."""
    seed = zlib.crc32(name.encode()) + 2
    directions = torch.randn((DIRECTIONS, *image.shape), generator=torch.Generator().manual_seed(seed)).double()
    double = rebuilt(name, known["gain"]).requires_grad_(False).double()
    forwards = slopes(double, torch.tensor(image)[None].double(), directions)
    backwards = np.array([(d.numpy() * gradient).sum() for d in directions])
    if distance(backwards, forwards) < 1e-5:
        return None
    known.update(single=0, slopes=forwards.tolist(), contradiction=distance(backwards, forwards))
    return directions.float().numpy()


def distance(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def reference(name):
    """What is known of a net with new numbers, an image, and the derivative there.
    Where a kink lies within rounding, float32 may take its other side, and deep nets
    without their trained statistics may be chaotic: of some images and gains the ones
    are kept that are the smoothest, or the first that are smooth enough."""
    size, seed = nets()[name][0], zlib.crc32(name.encode())
    best = None
    for gain in GAINS:
        net = rebuilt(name, gain).requires_grad_(False)
        double = copy.deepcopy(net).double()
        g = torch.Generator().manual_seed(seed + 1)
        for _ in range(DRAWS):
            image = torch.randn((1, 3, size, size), generator=g)
            answer, gradient = derivative(double, image.double(), TARGET)
            _, single = derivative(net, image, TARGET)
            known = {"target": TARGET, "gain": gain, "single": distance(single, gradient), "logits": answer.tolist()}
            known["tremble"] = tremble(double, image.double(), gradient, seed) if known["single"] <= SMOOTH else None
            rough = known["single"] if known["tremble"] is None else known["tremble"]
            if best is None or rough < best[0]:
                best = rough, known, image[0].numpy(), gradient
            if rough <= SMOOTH:
                break
        if best[0] <= SMOOTH:
            break
    gradient = best[-1]
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0, "the derivative vanishes"
    return best[1:]


def unfuse(net):
    """Has attention use products and a softmax rather than PyTorch's operator, and says
    whether any used that."""
    fused = False
    for m in net.modules():
        if getattr(m, "fused_attn", False):  # timm's
            m.fused_attn, fused = False, True
        if hasattr(m, "set_attn_implementation") and m.config._attn_implementation == "sdpa":
            m.set_attn_implementation("eager")
            fused = True
    return fused


def trace(net, image, path):
    torch.onnx.export(net, (image[:1],), path, dynamo=False, opset_version=17, input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}})


def dynamo(net, image, path):
    def export(**more):
        torch.onnx.export(net, (image[:2] if more else image[:1],), path, dynamo=True, input_names=["image"], output_names=["logits"],
                          external_data=False, verbose=False, **more)

    try:
        export(dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    except Exception:  # some nets fix the batch to what they are shown
        export()


def describe(path):
    """What a file says of itself; what it says of the Python behind it goes."""
    import onnx

    m = onnx.load(path)
    for n in m.graph.node:  # where in Python it was written
        n.ClearField("doc_string")
        n.ClearField("metadata_props")
    onnx.save(m, path)
    d = m.graph.input[0].type.tensor_type.shape.dim[0]
    return {"opset": next(o.version for o in m.opset_import if o.domain in ("", "ai.onnx")), "batch": d.dim_value}


def rebuilt(name, gain):
    net = nets()[name][1]().eval()
    redraw(net, zlib.crc32(name.encode()), gain)
    return net


def silently(f):
    """Runs f without what the exporters say."""
    with open(os.devnull, "w") as null:
        stdout, sys.stdout = sys.stdout, null
        try:
            f()
        finally:
            sys.stdout = stdout


def make(job):
    """Takes a net one step further: its reference, or an export."""
    name, step, folder = job
    base = os.path.join(folder, name.replace("/", "."))
    out = {"name": name, "exports": []}
    if os.path.exists(base + ".json"):
        out = json.load(open(base + ".json"))
    if step == "reference" and "target" in out or step == "relevance" and os.path.exists(base + ".relevance.npy") or step in [r["exporter"] for r in out["exports"]]:
        return name, step, "there already"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    start = time.time()
    said = ""
    if step == "reference":
        try:
            known, image, gradient = reference(name)
        except Exception as e:
            return name, step, "not built: " + "".join(traceback.format_exception_only(e)).strip()[:600]
        directions = contradicted(name, known, image, gradient)
        if directions is not None:
            np.save(base + ".directions.npy", directions)
        np.save(base + ".image.npy", image)
        np.save(base + ".gradient.npy", gradient.astype(np.float32))
        out.update(known)
        said = f": float32 errs by {out['single']:.1e}, trembling by {out['tremble'] or 1:.1e}"
    elif "target" not in out:
        return name, step, "not built"
    elif step == "relevance":
        image = torch.tensor(np.load(base + ".image.npy"))[None].double()
        net = rebuilt(name, out.get("gain", GAINS[0])).requires_grad_(False).double()
        try:
            answer, share = relevance(net, image, TARGET, logits, VALUES.get(name, ()))
        except NotImplementedError as e:
            return name, step, f"nothing is known: {e}"
        assert abs(answer - out["logits"][TARGET]) <= 1e-6 * max(1, abs(answer)), "what is detached changes what the net says"
        np.save(base + ".relevance.npy", share.astype(np.float32))
    else:
        size = nets()[name][0]
        image = torch.randn((2, 3, size, size), generator=torch.Generator().manual_seed(1))
        path = f"{base}.{step}.onnx"
        row = {"exporter": step, "file": os.path.basename(path)}
        export = {"trace": trace, "dynamo": dynamo}[step]
        try:
            net = rebuilt(name, out.get("gain", GAINS[0]))
            try:
                silently(lambda: export(net, image, path))
            except Exception:
                if not unfuse(net):
                    raise
                row["unfused"] = True
                silently(lambda: export(net, image, path))
            row.update(describe(path))
        except Exception as e:
            row["error"] = "".join(traceback.format_exception_only(e)).strip().splitlines()[0][:200]
            said = ": " + row["error"]
        out["exports"].append(row)
    with open(base + ".json", "w") as f:
        json.dump(out, f, indent=1)
    return name, step, f"{time.time() - start:.0f} s" + said


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    names = [n for n in sorted(nets()) if n in wanted or not wanted and not n.startswith("subset/")]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(int(os.environ.get("JOBS", "2"))) as pool:
        for step in os.environ.get("STEPS", "reference relevance trace dynamo").split():
            for name, step, said in pool.imap_unordered(make, [(n, step, folder) for n in names], chunksize=1):
                failed += said.startswith("not built")
                print(f"{name}: {step}: {said}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
