"""Compares runexp's maps and scores with those of other libraries, on the same nets, images and maps.

    docs/equality/run

makes an environment with those libraries and calls this script, which computes the experiment equality.yaml, then the
same with the libraries, and writes

    ../equality.csv   a line for each comparison,
    ../equality.md    the same as a table, between its markers,
    peers.csv         the libraries' numbers, which TestEquality compares with ours where no library is installed,
    defects.csv       numbers of Quantus that its papers' definitions don't give, next to ours; a table of the page, too.

It fails where a comparison that should be equal isn't.
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "experiments" / "quickstart"))

from nets import NETS  # noqa: E402
from page import into_page, table  # noqa: E402
from train import go_on  # noqa: E402

warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Ours:
    """The outputs of the experiment's cells, fetched by the command."""

    def __init__(self, command, folder):
        self.command, self.folder = command, pathlib.Path(folder)
        self.flags = ["--store", str(self.folder / "store")]
        self.call("run", "--quiet", "--out", str(self.folder / "review"))
        self.known = {}

    def call(self, verb, *args):
        done = subprocess.run([self.command, verb, str(HERE / "equality.yaml"), *args, *self.flags],
                              cwd=ROOT, capture_output=True, text=True)
        if done.returncode not in (0, 6):  # 6: another build's numbers are in the folder
            sys.exit(done.stderr)

    def __call__(self, stage, port=None, **axes):
        """Returns an array with one entry for each image: maps[method=…,model=…] and its like."""
        cell = stage + ("[%s]" % ",".join("%s=%s" % a for a in sorted(axes.items())) if axes else "")
        if cell not in self.known:
            to = self.folder / "cells" / str(len(self.known))
            shutil.rmtree(to, ignore_errors=True)  # of an earlier run
            self.call("get", cell, "-o", str(to))
            self.known[cell] = to
        paths = sorted(self.known[cell].glob("*.npy"))
        path = next((p for p in paths if p.stem == port), None) if port else paths[0]
        return cell + ("." + path.stem if len(paths) > 1 else ""), np.load(path)


def load_nets():
    nets = {}
    for name in ("vgg", "vgg-bn", "resnet", "vit"):
        net = NETS[name]()
        go_on(net, ROOT / "experiments" / "quickstart" / (name + ".onnx"))
        nets[name] = net.eval()
    return nets


class Comparison:
    """Collects comparisons, and fails on those that should be equal and aren't."""

    def __init__(self, ours, images):
        self.ours, self.images = ours, images
        self.rows, self.peers, self.defects = [], [], []

    def difference(self, kind, ours, theirs, bound=None):
        """Returns the largest difference over all cells: of maps relative to each map's largest magnitude, of scores
        absolute. Where there is a bound, the library's numbers are kept for TestEquality."""
        worst = 0
        for (cell, mine), other in zip(ours, theirs):
            other = np.asarray(other, np.float64)
            mine = np.asarray(mine, np.float64).reshape(other.shape)
            for i, (a, b) in enumerate(zip(mine, other)):
                scale = (np.abs(b).max() or 1) if kind == "map" else 1
                d = np.where(np.isnan(a) & np.isnan(b), 0, np.abs(a - b))
                worst = max(worst, float(np.max(np.where(np.isnan(d), np.inf, d)) / scale))
                if bound and (kind == "score" or i == 0):
                    values = blocks(b) if kind == "map" else np.ravel(b)
                    self.peers.append([kind, cell, i, "%.0e" % bound] + ["%.6g" % v for v in values])
        return worst

    def add(self, kind, package, call, ours, theirs, reason="", how="", same=None, within=1e-5, rounded=None, keep=True):
        """Adds a line. ours is a list of (cell, values), theirs of values for the same cells. Without a reason both
        must be equal; with one, how says under which definition they are: that of same, (ours, theirs). rounded are
        theirs in single precision, where theirs are in double: what that changes may be the difference. Without
        keep, theirs aren't kept for TestEquality."""
        first, then = self.difference(kind, ours, theirs), None
        last = same or (None if reason else (ours, theirs))
        rounding = None
        if rounded:
            rounding = self.difference(kind, [("", v) for v in rounded], (last or (ours, theirs))[1])
            within = max(within, 10 ** math.ceil(math.log10(5 * rounding)) if rounding else 0)
        equal = None
        if last:
            then = self.difference(kind, *last, within if keep else None)
            equal = bool(then <= within)
        print("%-9s %-60s %7.0e %7s %7s %s%s" % (
            package, call, first, *("" if v is None else "%.0e" % v for v in (then, rounding)), how,
            " !" if equal is False else ""), flush=True)
        self.rows.append({"library": package, "theirs": call, "ours": ours[0][0], "difference": first,
                          "reason": reason, "same": how, "then": then, "rounding": rounding, "within": within,
                          "equal": equal})


def blocks(m):
    """The sums of 8 times 8 squares of a map, over all channels: few numbers that see every pixel."""
    m = m.reshape(-1, *m.shape[-2:]).sum(0)
    h, w = m.shape[0] // 8, m.shape[1] // 8
    return m.reshape(8, h, 8, w).sum((1, 3)).ravel()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runexp", default=str(ROOT / "bin" / "runexp"))
    parser.add_argument("--folder", required=True, help="for the store and the exported arrays")
    parser.add_argument("--only", default="", help="compute these anew, such as captum,quantus, and take the others' lines from the folder")
    args = parser.parse_args()

    ours = Ours(args.runexp, args.folder)
    _, pixels = ours("images", "images")
    nets = load_nets()
    x = (torch.from_numpy(pixels).float() / 255 - 0.5) / 0.5
    targets = {}
    for name, net in nets.items():
        with torch.no_grad():
            targets[name] = net(x).argmax(1)
        assert (targets[name].numpy() == ours("guess", "targets", model=name)[1].ravel()).all(), name
    c = Comparison(ours, x)
    world = argparse.Namespace(ours=ours, nets=nets, x=x, pixels=pixels, targets=targets, c=c)

    import peers_attribution
    import peers_defects
    import peers_metrics

    every = {"captum": peers_attribution.captum, "grad-cam": peers_attribution.grad_cam,
             "saliency": peers_attribution.pair, "zennit": peers_attribution.zennit,
             "quantus": peers_metrics.quantus, "compact": peers_metrics.compact, "subsets": peers_metrics.subsets,
             "road": peers_metrics.road, "pic": peers_metrics.pic, "defects": peers_defects.quantus}
    for name in args.only.split(",") if args.only else every:
        c.rows, c.peers, c.defects = [], [], []
        every[name](world)
        with open(ours.folder / (name + ".json"), "w") as f:
            json.dump([c.rows, c.peers, c.defects], f)
    parts = [json.loads((ours.folder / (name + ".json")).read_text()) for name in every
             if (ours.folder / (name + ".json")).exists()]
    rows, peers, defects = ([line for part in parts for line in part[k]] for k in range(3))
    if len(parts) == len(every):
        write(rows, peers, defects)
    unequal = [r["library"] + " " + r["theirs"] for r in rows if r["equal"] is False]
    if unequal:
        sys.exit("not equal: " + "; ".join(unequal))
    if untranslated():
        sys.exit("docs/coming-from.md lacks " + ", ".join(untranslated()))


def untranslated():
    """Returns the libraries' public names that docs/coming-from.md doesn't have."""
    import captum.attr
    import pytorch_grad_cam as pgc
    import quantus

    bases = {"Attribution", "GradientAttribution", "PerturbationAttribution", "NeuronAttribution", "LayerAttribution"}
    names = {n for n in captum.attr.__all__ if n not in bases and isinstance(getattr(captum.attr, n), type)
             and issubclass(getattr(captum.attr, n), captum.attr.Attribution)}
    names |= {n for n, v in vars(pgc).items() if isinstance(v, type) and issubclass(v, pgc.base_cam.BaseCAM)}
    names |= {n for n, v in vars(quantus).items() if isinstance(v, type) and issubclass(v, quantus.Metric)} - {"Metric"}
    page = (HERE.parent / "coming-from.md").read_text()
    return sorted(n for n in names if "`%s`" % n not in page)


def stage(cell):
    """Returns the stage of a cell and its parameters, as equality.yaml has them."""
    text = (HERE / "equality.yaml").read_text()
    name = re.search(r"^maps\[method=([\w-]+)", cell)
    name = name[1] if name else re.match(r"[\w-]+", cell)[0]
    block = re.search(r"^( +)%s:.*\n(?:\1 .*\n)*" % name, text, re.M)[0]
    options = re.search(r"with: \{(.*?)\}", block)
    options = (options[1] if options else "").replace("reduce: none, ", "").replace("reduce: none", "")
    port = cell.partition("].")[2]
    uses = re.search(r"uses: ([\w/-]+)", block)[1] + ("." + port if port and port != "maps" else "")
    return "`%s`" % uses + (" `%s`" % options if options else "")


def write(rows, peers, defects):
    head = ["library", "theirs", "ours", "difference", "reason", "same definition", "then", "their rounding"]
    number = lambda v: "" if v is None else "0" if v == 0 else "%.0e" % v  # noqa: E731
    lines = [[r["library"] + " " + importlib.metadata.version(r["library"]), "`%s`" % r["theirs"], stage(r["ours"]),
              number(r["difference"]), r["reason"], r["same"], number(r["then"]) if r["reason"] else "",
              number(r["rounding"])] for r in rows]
    table(HERE.parent / "equality.csv", [head] + lines)
    table(HERE / "peers.csv", peers)
    into_page("docs/equality/run", head, lines)
    head = ["Quantus " + importlib.metadata.version("quantus"), "theirs", "here", "ours", "reason"]
    table(HERE / "defects.csv", [["call", "theirs", "cell", "ours", "reason"]] + defects)
    into_page("docs/equality/run: defects", head,
              [["`%s`%s" % call_of(call), theirs, stage(cell) if cell else "", mine, reason]
               for call, theirs, cell, mine, reason in defects])


def call_of(text):
    """A call, and what follows a comma behind it."""
    call = re.match(r"[\w.]+(\([^)]*\))?", text)[0]
    return call, text[len(call):]


if __name__ == "__main__":
    main()
