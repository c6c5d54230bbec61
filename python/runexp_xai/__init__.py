"""Runs runexp's experiments from Python, and reads their results as pandas tables and NumPy arrays.

The command does all the work; this module starts it and reads its files. pandas and NumPy are imported by the
functions that return their types.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from .tokens import write_tokens

__all__ = ["Review", "command", "read", "run", "save_maps", "write_tokens"]


def command():
    """Returns the path of the command: the one installed with this module, or the first in PATH."""
    for scheme in (None, "posix_user"):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        if os.access(os.path.join(folder, "runexp"), os.X_OK):
            return os.path.join(folder, "runexp")
    found = shutil.which("runexp")
    if not found:
        raise FileNotFoundError("the command runexp is neither in %s nor in PATH" % sysconfig.get_path("scripts"))
    return found


def run(path, *flags):
    """Runs an experiment, such as run("x.yaml", "--limit", "4"), and returns its Review.

    In a notebook or a terminal it counts the cells on stderr, and then writes the command's warnings and the answer.
    Raises subprocess.CalledProcessError, with the command's messages in stderr, unless the run succeeds. A published
    folder that holds other numbers is such an error too: "--accept" rewrites it.
    """
    args = [command(), "run", os.fspath(path), *map(os.fspath, flags), "--json"]
    lines, cells = [], _Cells()
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=messages, text=True) as process:
            try:
                for line in process.stdout:
                    lines.append(line)
                    cells.count(json.loads(line))
            except BaseException:  # the command's first signal lets it finish what it computes, and keep it
                process.terminate()
                raise
            finally:
                cells.end()
        messages.seek(0)
        done = subprocess.CompletedProcess(args, process.returncode, "".join(lines), messages.read())
    if done.returncode:
        raise _Failed(done)
    sys.stderr.write(done.stderr)
    return Review(json.loads(lines[-1])["folder"], path, _narrowing(flags))


def read(folder, experiment=None):
    """Reads a review folder. Maps are computed from the experiment file, which Review.maps needs."""
    return Review(folder, experiment)


def save_maps(folder, ids, maps):
    """Writes maps for attribute/external: maps[i], [height, width] or [channels, height, width], belongs to ids[i]."""
    import numpy as np

    ids = list(ids)
    if len(ids) != len(maps):
        raise ValueError("%d ids and %d maps" % (len(ids), len(maps)))
    for item, values in zip(ids, maps):
        path = os.path.join(folder, item + ".npy")
        if os.path.relpath(path, folder).split(os.sep)[0] == os.pardir:
            raise ValueError("the id %r leads out of the folder" % item)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        np.save(path, np.asarray(values))


class Review:
    """A review folder: tables and values as pandas.DataFrame, with axes as columns; maps as NumPy arrays."""

    def __init__(self, folder, experiment=None, narrowing=()):
        self.folder, self.experiment, self._narrowing = os.fspath(folder), experiment, tuple(narrowing)
        if not os.path.isfile(os.path.join(self.folder, "README.md")):
            raise FileNotFoundError("%s isn't a review folder" % self.folder)

    def __repr__(self):
        return "Review(%r)" % self.folder

    @property
    def tables(self):
        """The published tables, by name."""
        import pandas as pd

        return {name: pd.read_csv(path) for name, path in self._files("tables")}

    @property
    def items(self):
        """The published values of single items, by stage: a column for each axis, then item and value."""
        import pandas as pd

        found = {}
        for name, path in self._files("items"):
            wide = pd.read_csv(path).rename(columns={"cell/item": "cell"})
            long = wide.melt("cell", var_name="item", value_name="value")
            axes = pd.DataFrame([_axes(cell) for cell in long.pop("cell")], index=long.index)
            found[name] = pd.concat([axes, long], axis=1)
        return found

    def maps(self, cell):
        """Returns the first output of a cell such as "maps[method=rise,model=vgg]": an array with an entry for each
        item, in the order of ids, or a list of arrays if their shapes differ. Computes the cell if it must."""
        return self._get(cell)[0]

    def ids(self, cell):
        """Returns the items' ids of the first output of a cell."""
        return self._get(cell)[1]

    def _get(self, cell):
        import numpy as np
        import pandas as pd

        if self.experiment is None:
            raise ValueError("name the experiment file: read(folder, experiment)")
        with tempfile.TemporaryDirectory() as folder:
            written = _call("get", self.experiment, cell, "-o", folder, *self._narrowing).splitlines()
            table = next((f for f in written if f.endswith(".csv")), None)
            base = table and table[: -len(".csv")]
            if base is None or not (os.path.exists(base + ".npy") or os.path.isdir(base)):
                raise ValueError("%s has no tensors: runexp get writes %s" % (cell, ", ".join(written)))
            ids = pd.read_csv(table, dtype=str, keep_default_na=False)["item"].tolist()
            if os.path.exists(base + ".npy"):
                return np.load(base + ".npy"), ids
            return [np.load(os.path.join(base, f)) for f in sorted(os.listdir(base))], ids

    def _files(self, kind):
        folder = os.path.join(self.folder, kind)
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if file.endswith(".csv"):
                yield file[: -len(".csv")], os.path.join(folder, file)


def _call(*args):
    """Runs the command and returns what it prints."""
    done = subprocess.run([command(), *map(os.fspath, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise _Failed(done)
    return done.stdout


class _Cells:
    """Counts a run's cells in one line of stderr, where someone is looking."""

    def __init__(self):
        self.done = self.total = 0
        self.shown = sys.stderr.isatty() or "ipykernel" in sys.modules

    def count(self, event):
        if event["event"] == "planned":
            self.done, self.total = event["done"], event["total"]
        elif event["event"] in ("done", "cached") and self.total:
            self.done += 1
        else:
            return
        if self.shown:
            print("\r%d of %d cells" % (self.done, self.total), end="", file=sys.stderr, flush=True)

    def end(self):
        if self.shown and self.total:
            print(file=sys.stderr)


class _Failed(subprocess.CalledProcessError):
    """Shows the command's messages."""

    def __init__(self, done):
        super().__init__(done.returncode, done.args, done.stdout, done.stderr)

    def __str__(self):
        return super().__str__() + "\n" + self.stderr


def _axes(cell):
    """Returns the axes in a cell's name, stage[axis=id,…]."""
    _, _, inside = cell.partition("[")
    return dict(part.split("=", 1) for part in inside.rstrip("]").split(",") if part)


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
