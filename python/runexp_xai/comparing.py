"""Compares methods on a net and images in one call: writes the experiment that "runexp new" writes, and runs it."""

import json
import os
import re
import shutil
import struct
import sys
import tempfile
import zlib

from .errors import needed
from .exporting import export
from .process import call
from .running import run

_HEADER = "# Written by runexp_xai.compare, which writes it anew: copy it to change it.\n"


def compare(net, images, methods=None, metrics=None, preset=None, *, folder=None, example=None, labels=None, flags=()):
    """Writes an experiment, runs it, and returns its Review. What has been computed before isn't computed again.

    net is the path of an ONNX file, what export returned, or a torch.nn.Module, which export writes with example and
    labels.
    images is what "runexp new" takes: a folder of photographs, one folder a class or with a labels.csv; or an array of
    uint8, [N, height, width, 3].
    methods are ids of that experiment, such as "lrp", or names of stages, such as "lime" for attribute/lime; or a dict
    of an id and a stage: {"few": {"uses": "attribute/rise", "with": {"masks": 100}}}. By default they are those that
    suit the net.
    metrics are names that "runexp new" wires, such as "rise" and "mas"; or a dict of a name and a stage:
    {"sparse": {"uses": "score/compactness", "port": "gini"}}. A stage reads maps unless it has "in"; "port" is needed
    where it has several outputs.
    preset is how pixels are fed; by default it is inferred from labels, with a warning if they leave doubt.
    folder is where the experiment and its results, review, are written, by default one with the net's name. A further
    call rewrites them. flags are those of run, such as ("--limit", "4").
    """
    if isinstance(net, str) or hasattr(net, "__fspath__"):
        path = os.fspath(net)
    elif example is None:
        raise TypeError("a %s needs example, a batch of images as it takes them, to be exported" % type(net).__name__)
    else:
        path = os.fspath(export(net, example, labels=labels))
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.abspath(folder or name)
    _refuse_foreign(folder)
    if not isinstance(images, str) and not hasattr(images, "__fspath__"):
        images = _photos(images, folder)
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compare-", dir=parent) as made:  # a sibling: relative paths stay true
        told = call("new", made, "--model", path, "--images", images)
        written = next(f for f in os.listdir(made) if f.endswith(".yaml"))
        with open(os.path.join(made, written), encoding="utf-8") as f:
            text = f.read().replace(made, folder).replace(os.path.relpath(made), os.path.relpath(folder))
        text = _HEADER + _with_metrics(_with_methods(_with_preset(text, preset), methods), metrics)
        with open(os.path.join(made, written), "w", encoding="utf-8") as f:
            f.write(text)
        os.makedirs(folder, exist_ok=True)
        for file in os.listdir(made):
            os.replace(os.path.join(made, file), os.path.join(folder, file))
    if preset is None and re.search("^preset: a guess", told, re.M):
        print(next(line for line in told.splitlines() if line.startswith("preset: a guess")), file=sys.stderr)
    # The folder is this function's own, so that a call with other arguments may rewrite its results.
    own = ("--out", os.path.join(os.path.relpath(folder), "review"), "--accept")
    return run(os.path.relpath(os.path.join(folder, written)), *own, *flags)


def _refuse_foreign(folder):
    """Refuses a folder with an experiment that compare didn't write."""
    for file in os.listdir(folder) if os.path.isdir(folder) else ():
        if file.endswith(".yaml"):
            with open(os.path.join(folder, file), encoding="utf-8") as f:
                if f.readline() != _HEADER:
                    raise FileExistsError("%s isn't of compare: name another folder" % os.path.join(folder, file))


def _with_preset(text, preset):
    """Returns the experiment with another preset of the model."""
    if preset is None:
        return text
    return _replaced(r"^(      preset: ).*$", lambda m: m[1] + json.dumps(preset), text)


def _with_methods(text, methods):
    """Returns the experiment with these methods on its axis."""
    if methods is None:
        return text
    block = re.search(r"^  method:\n((?:    .*\n)+)", text, re.M)
    lines = dict(re.findall(r"^    ([\w-]+): +(\{uses: .*\})$", block[1], re.M))
    stages = methods.items() if isinstance(methods, dict) else [(m, None) for m in _listed("methods", methods)]
    made = ["    %s: %s\n" % (json.dumps(name), json.dumps(stage, ensure_ascii=False) if stage else lines.get(
        name, "{uses: %s}" % json.dumps(name if "/" in name else "attribute/" + name))) for name, stage in stages]
    if not made:
        raise ValueError("methods is empty")
    return text[: block.start(1)] + "".join(made) + text[block.end(1):]


def _with_metrics(text, metrics):
    """Returns the experiment with these metrics in its leaderboard, and without the stages of the others."""
    if metrics is None:
        return text
    block = re.search(r"^        metric:\n((?:          .*\n)+)", text, re.M)
    wired = dict(re.findall(r"^          ([\w-]+): (\S+)$", block[1], re.M))
    stages = metrics if isinstance(metrics, dict) else dict.fromkeys(_listed("metrics", metrics))
    if not stages:
        raise ValueError("metrics is empty")
    ranked, added = [], []
    for name, stage in stages.items():
        if stage is None and name not in wired:
            raise ValueError("no metric %r is wired here: there are %s; another one is a dict, {%r: {\"uses\": …}}"
                             % (name, ", ".join(wired), name))
        if stage is not None:
            stage = dict(stage)
            port = stage.pop("port", None)
            stage.setdefault("in", {"maps": "maps"})
            added.append("  %s: %s\n" % (json.dumps("metric-" + name), json.dumps(stage, ensure_ascii=False)))
            wired[name] = "metric-" + name + ("." + port if port else "")
        ranked.append("          %s: %s\n" % (json.dumps(name), wired[name]))
    text = text[: block.start(1)] + "".join(ranked) + text[block.end(1):]
    for name, edge in wired.items():
        if name not in stages:
            line = r"^(  %s: .*|      scores: %s)\n" % (edge.split(".")[0], re.escape(edge))
            text = re.sub(line, "", text, flags=re.M)
    if not {"rise", "mas"} & {name for name in stages if stages[name] is None}:
        text = re.sub(r"^  (insertion|deletion): .*\n", "", text, flags=re.M)
    return _replaced(r"^  leaderboard:\n", lambda m: "".join(added) + m[0], text)


def _listed(what, names):
    """Returns a list of names; a text alone would be one of letters."""
    if isinstance(names, str):
        raise TypeError("%s is a text: [%r] is a list with it" % (what, names))
    return list(names)


def _replaced(pattern, to, text):
    """Replaces the only match of a pattern in what new writes."""
    text, n = re.subn(pattern, to, text, flags=re.M)
    if n != 1:
        raise RuntimeError("the experiment of runexp new has %d matches of %s: the module and the command differ in "
                           "version" % (n, pattern))
    return text


def _photos(images, folder):
    """Writes an array of pictures as PNG files, and returns their folder."""
    np = needed("numpy", "notebook")
    images = np.asarray(images)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or len(images) == 0:
        raise ValueError("images is an array of %s, %s: pictures are uint8, [N, height, width, 3], before normalisation"
                         % (images.dtype, list(images.shape)))
    photos = os.path.join(folder, "photos")
    shutil.rmtree(photos, ignore_errors=True)
    os.makedirs(photos)
    for number, image in enumerate(images):
        with open(os.path.join(photos, "%05d.png" % number), "wb") as f:
            f.write(_png(image))
    return photos


def _png(image):
    """Returns a picture as a PNG file: 8 bits, RGB, no filters."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width, _ = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
