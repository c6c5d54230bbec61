"""A review folder as a notebook shows and reads it."""

import os
import re
import shutil
import tempfile
import urllib.parse
import weakref

from .errors import needed
from .process import call


class Review:
    """A review folder: the answer, tables and values as pandas.DataFrame with axes as columns, figures, and maps as
    NumPy arrays. What maps and ids have read stays for the life of the Review."""

    def __init__(self, folder, experiment=None, narrowing=()):
        self.folder, self.experiment, self._narrowing = os.fspath(folder), experiment, tuple(narrowing)
        self._kept, self._cells = None, {}
        if not os.path.isfile(os.path.join(self.folder, "README.md")):
            raise FileNotFoundError("%s isn't a review folder" % self.folder)

    def __repr__(self):
        return "Review(%r)" % self.folder

    def _repr_markdown_(self):
        head, sections = self._readme()
        main = next((s for s in map(_opened, sections) if "\n| " in s), "")
        where = urllib.parse.quote(os.path.relpath(self.folder))
        return re.sub(r"\]\((tables|figures|cells)/", lambda m: "](%s/%s/" % (where, m[1]), head + "\n" + main)

    @property
    def answer(self):
        """The answers at the beginning of README.md, a paragraph each; "" without one."""
        with open(os.path.join(self.folder, "README.md"), encoding="utf-8") as f:
            found = re.findall(r"^<!-- text .* answer -->\n(.*?)\n<!-- end of text -->$", f.read(), re.M | re.S)
        return re.sub(r"\\([][\\`*_{}<>()#+.!|~-])", r"\1", re.sub(r"(?<!\\)\*\*", "", "\n\n".join(found)))

    @property
    def tables(self):
        """The published tables, by name. The end of a name after a "." is enough if no other table has it."""
        pd = needed("pandas", "notebook")
        return _Named("table", {name: pd.read_csv(path) for name, path in self._files("tables", ".csv")})

    @property
    def items(self):
        """The published values of single items, by stage and port: a column for each axis, then item and value."""
        pd = needed("pandas", "notebook")
        found = _Named("stage")
        for name, path in self._files("items", ".csv"):
            wide = pd.read_csv(path).rename(columns={"cell/item": "cell"})
            long = wide.melt("cell", var_name="item", value_name="value")
            axes = pd.DataFrame([_axes(cell) for cell in long.pop("cell")], index=long.index)
            found[name] = pd.concat([axes, long], axis=1)
        return found

    @property
    def figures(self):
        """The published figures, by name; a notebook shows them."""
        return _Named("figure", {name: Figure(path) for name, path in self._files("figures", ".svg")})

    def maps(self, cell):
        """Returns the first output of a cell such as "maps[method=rise,model=vgg]": an array with an entry for each
        item, in the order of ids, or a list of arrays if their shapes differ. Computes the cell if it must. The
        arrays are memory-mapped; writing to one changes neither the file nor another."""
        np = needed("numpy", "notebook")
        base, _ = self._get(cell)
        if os.path.exists(base + ".npy"):
            return np.load(base + ".npy", mmap_mode="c")
        return [np.load(os.path.join(base, f), mmap_mode="c") for f in sorted(os.listdir(base))]

    def ids(self, cell):
        """Returns the items' ids of the first output of a cell."""
        return list(self._get(cell)[1])

    def _get(self, cell):
        """Returns the path, without its ending, of a cell's first output in the Review's own folder, and its ids."""
        if cell in self._cells:
            return self._cells[cell]
        if self.experiment is None:
            raise ValueError("name the experiment file: read(folder, experiment)")
        pd = needed("pandas", "notebook")
        if self._kept is None:
            self._kept = tempfile.mkdtemp()
            weakref.finalize(self, shutil.rmtree, self._kept, ignore_errors=True)
        folder = tempfile.mkdtemp(dir=self._kept)
        written = call("get", self.experiment, cell, "-o", folder, *self._narrowing).splitlines()
        table = next((f for f in written if f.endswith(".csv")), None)
        base = table and table[: -len(".csv")]
        if base is None or not (os.path.exists(base + ".npy") or os.path.isdir(base)):
            raise ValueError("%s has no tensors: runexp get writes %s" % (cell, ", ".join(written)))
        ids = pd.read_csv(table, dtype=str, keep_default_na=False)["item"].tolist()
        self._cells[cell] = os.path.abspath(base), ids
        return self._cells[cell]

    def _readme(self):
        """Returns README.md's text before its first section, and its sections, without comments."""
        with open(os.path.join(self.folder, "README.md"), encoding="utf-8") as f:
            head, *sections = re.split(r"^(?=## )", re.sub(r"^<!--.*?-->\n", "", f.read(), flags=re.M), flags=re.M)
        return head, sections

    def _files(self, kind, ending):
        folder = os.path.join(self.folder, kind)
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if file.endswith(ending):
                yield file[: -len(ending)], os.path.join(folder, file)


class Figure:
    """A published figure, which a notebook shows. path is that of the SVG file; PNG and PDF may be next to it."""

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return "Figure(%r)" % self.path

    def _repr_svg_(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()


class _Named(dict):
    """A dict whose keys may be shortened to an end that only one of them has."""

    def __init__(self, noun, found=()):
        super().__init__(found)
        self._noun = noun

    def __missing__(self, name):
        ends = [key for key in self if key.endswith(".%s" % (name,))]
        if len(ends) == 1:
            return self[ends[0]]
        several = "several %ss end in" % self._noun if ends else "no %s is called" % self._noun
        raise KeyError("%s %r: there are %s" % (several, name, ", ".join(ends or self) or "none"))


def _opened(section):
    """Returns the beginning of a section: its heading, and the tables that stand open."""
    return re.split(r"^(?=<details>|!\[)", section, flags=re.M)[0]


def _axes(cell):
    """Returns the axes in a cell's name, stage[axis=id,…]."""
    _, _, inside = cell.partition("[")
    return dict(part.split("=", 1) for part in inside.rstrip("]").split(",") if part)
