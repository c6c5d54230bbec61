"""Writes tables into files and into docs/equality.md, between their markers."""

import csv
import pathlib

PAGE = pathlib.Path(__file__).resolve().parent.parent / "equality.md"


def into_page(mark, head, lines):
    """Puts a table into the page, between its markers."""
    mark = "<!-- made by %s -->\n" % mark
    before, rest = PAGE.read_text().split(mark)
    text = "".join("| " + " | ".join(line) + " |\n" for line in [head, ["---"] * len(head)] + lines)
    PAGE.write_text(before + mark + text + rest[rest.index("<!-- end -->"):])


def table(path, lines):
    with open(path, "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows(lines)
