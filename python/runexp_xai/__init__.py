"""Runs runexp's experiments from Python, and reads their results as pandas tables and NumPy arrays.

The command does all the work; this module starts it and reads its files. pandas and NumPy are imported by the
functions that return their types.
"""

import os

from .comparing import compare
from .errors import ExportError, RunError, needed
from .exporting import Exported, export
from .process import command
from .review import Figure, Review
from .running import run
from .tokens import write_tokens

__all__ = ["ExportError", "Exported", "Figure", "Review", "RunError", "command", "compare", "export", "read", "run",
           "save_maps", "write_tokens"]


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
