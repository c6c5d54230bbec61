"""Runs runexp's experiments from Python, and reads their results as pandas tables and NumPy arrays.

The command does all the work; this module starts it and reads its files. pandas and NumPy are imported by the
functions that return their types.
"""

import os

from .errors import ExportError, RunError, needed
from .exporting import Exported, export
from .process import command, follow
from .review import Figure, Review
from .tokens import write_tokens

__all__ = ["ExportError", "Exported", "Figure", "Review", "RunError", "command", "export", "read", "run", "save_maps",
           "write_tokens"]


def run(path, *flags):
    """Runs an experiment, such as run("x.yaml", "--limit", "4"), and returns its Review.

    In a notebook or a terminal it counts the cells on stderr, and then writes the command's warnings and the answer.
    Raises RunError, with the failed cells and their reasons, unless the run succeeds. A published folder that holds
    other numbers is such an error too: "--accept" rewrites it.
    """
    event = follow("run", path, *flags)
    return Review(event["folder"], path, _narrowing(flags))


def read(folder, experiment=None):
    """Reads a review folder. Maps are computed from the experiment file, which Review.maps needs."""
    return Review(folder, experiment)


def save_maps(folder, ids, maps):
    """Writes maps for attribute/external: maps[i], [height, width] or [channels, height, width], belongs to ids[i]."""
    np = needed("numpy", "notebook")
    ids = list(ids)
    if len(ids) != len(maps):
        raise ValueError("%d ids and %d maps" % (len(ids), len(maps)))
    for item, values in zip(ids, maps):
        path = os.path.join(folder, item + ".npy")
        if os.path.relpath(path, folder).split(os.sep)[0] == os.pardir:
            raise ValueError("the id %r leads out of the folder" % item)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        np.save(path, np.asarray(values))


def _narrowing(flags):
    """Returns those flags that override or narrow the experiment, and where its results are, which get takes too."""
    kept, names = [], ("--set", "--only", "--limit", "--store", "--devices", "--onnxruntime")
    flags = [os.fspath(f) for f in flags]
    for i, flag in enumerate(flags):
        if flag.split("=", 1)[0] in names:
            kept.append(flag)
        elif i and flags[i - 1] in names:
            kept.append(flag)
    return kept
