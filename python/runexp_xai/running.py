"""Runs an experiment."""

import os

from .process import follow
from .review import Review


def run(path, *flags):
    """Runs an experiment, such as run("x.yaml", "--limit", "4"), and returns its Review.

    In a notebook or a terminal it counts the cells on stderr, and then writes the command's warnings and the answer.
    Raises RunError, with the failed cells and their reasons, unless the run succeeds. A published folder that holds
    other numbers is such an error too: "--accept" rewrites it.
    """
    event = follow("run", path, *flags)
    return Review(os.path.abspath(event["folder"]), path, _narrowing(flags))


def _narrowing(flags):
    """Returns those flags that override or narrow the experiment, and where its results are, which get takes too."""
    kept, names = [], ("--set", "--only", "--limit", "--store", "--devices", "--onnxruntime")
    flags = [os.fspath(f) for f in flags]
    for i, flag in enumerate(flags):
        if flag.split("=", 1)[0] in names or flag == "--allow-python":
            kept.append(flag)
        elif i and flags[i - 1] in names:
            kept.append(flag)
    return kept
