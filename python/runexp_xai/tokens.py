"""Writes the tokens of texts by a model's own tokeniser, for dataset/tokens. transformers is imported when needed."""

import csv
import json
import sys

_KEPT = ("id", "label", "rationale")


def write_tokens(model, texts, to, length=None, text="text", label="label"):
    """Writes JSON lines to an open text file, and returns how many texts were cut.

    model is a name on Hugging Face's hub or a folder, or a tokeniser that transformers has loaded. texts is a path of
    CSV or JSON lines, or dictionaries with text and perhaps label, id and rationale; text and label name other columns.
    length is the most tokens of a text, special ones included.
    """
    tokenizer = _tokenizer(model)
    ids = tokenizer.get_vocab().values()
    header = {"pad": tokenizer.pad_token_id, "mask": tokenizer.mask_token_id, "vocabulary": max(ids) + 1}
    to.write(json.dumps({name: value for name, value in header.items() if value is not None}) + "\n")
    cut = 0
    for number, row in enumerate(_rows(texts) if isinstance(texts, str) else texts, 1):
        if not isinstance(row.get(text), str):
            has = ", ".join(map(str, row))
            raise ValueError("text %d has no %r (--text names another): it has %s" % (number, text, has))
        made = tokenizer(row[text], truncation=length is not None, max_length=length, return_special_tokens_mask=True)
        if not hasattr(made, "encodings") or not made.encodings:
            raise ValueError("the tokeniser of %s is one in Python, which has no offsets" % (model,))
        made = made.encodings[0]
        cut += bool(made.overflowing)
        line = {"text": row[text], "ids": made.ids, "tokens": made.tokens, "offsets": made.offsets,
                "special": made.special_tokens_mask, "types": made.type_ids}
        for name in _KEPT:
            value = row.get(label if name == "label" else name)
            if value is not None and value != "":
                line[name] = value
        to.write(json.dumps(line, ensure_ascii=False) + "\n")
    return cut


def main(args):
    """The command tokens MODEL TEXTS [--length N] [--text COLUMN] [--label COLUMN], which writes to stdout."""
    import argparse

    parser = argparse.ArgumentParser("python -m runexp_xai tokens", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a name on Hugging Face's hub, or a folder")
    parser.add_argument("texts", help="CSV with names of columns, or JSON lines")
    parser.add_argument("--length", type=int, help="the most tokens of a text; longer ones lose their ends")
    parser.add_argument("--text", default="text", help="the column of the texts")
    parser.add_argument("--label", default="label", help="the column of the labels")
    found = parser.parse_args(args)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        cut = write_tokens(found.model, found.texts, sys.stdout, found.length, found.text, found.label)
    except (ImportError, OSError, ValueError) as e:
        sys.exit("tokens: %s" % e)
    if cut:
        print("%d texts have more than %d tokens and lose their ends" % (cut, found.length), file=sys.stderr)


def _tokenizer(model):
    if not isinstance(model, str):
        return model
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise ImportError("the model's own tokeniser needs transformers: pip install transformers") from None
    return AutoTokenizer.from_pretrained(model)


def _rows(path):
    """Yields the records of a file as dataset/text reads them: a line break in a field of CSV is one character."""
    with open(path, encoding="utf-8-sig", newline="") as f:
        head = f.readline()
        f.seek(0)
        if head.lstrip().startswith("{"):
            yield from (json.loads(line) for line in f if line.strip())
            return
        csv.field_size_limit(1 << 28)
        separator = max(",;\t|", key=head.count)
        for row in csv.DictReader(f, delimiter=separator, strict=True):
            row = {name.strip(): (value or "").replace("\r\n", "\n") for name, value in row.items() if name}
            if row.get("rationale"):
                row["rationale"] = json.loads(row["rationale"])
            yield row
