"""The texts that the networks read, by a WordPiece vocabulary: scripts that run from right to left, combining
marks, pieces of words, unknown words, a pair, and lengths from 3 to 30 tokens."""
import json

from transformers import BertTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """! , . ' ? - a an the this that it is was be are i we you he she they and or but not no never of in to for
with on at by all one two film movie story plot actor acting scene music end start part life time
good great bad awful dull fine love hate like best worst more less very so too just even than then
wonder ##ful ##ly ##ing ##ed ##s ##er ##less un ##est ##ness ca m ##u e ##mu boring fun ##ny sad happy
הסרט נהדר מאוד لا فيلم رائع 映 画 最 高 नमस ##त ##े 🙂 me my 1 2 ; : yes""".split()
VOCABULARY = SPECIAL + WORDS

# A text, a second one or None, the label, and the words that a person would mark.
TEXTS = [
    ("great", None, 1, ["great"]),
    ("Not bad, not good.", None, 1, ["Not bad", "not good"]),
    ("Ça m'a ému!", None, 1, ["ému"]),
    ("הסרט נהדר מאוד, فيلم رائع", None, 1, ["נהדר מאוד", "رائع"]),
    ("the plot is dull", "but the acting was wonderful 🙂", 0, ["dull", "wonderful"]),
    ("映画最高 zzz fun-ny", None, 1, ["最高"]),
    ("I hate this नमस्ते", None, 0, ["hate"]),
    ("She was never happy with the start of this story, and the end is so unhappy that even the best music"
     " is less boring than me!", None, 0, ["never happy", "unhappy", "boring"]),
]


def tokenizer(folder):
    """BERT's tokeniser of the vocabulary."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return BertTokenizerFast(str(path), do_lower_case=True)


def lines(tok):
    """What dataset/tokens reads, a dictionary a text."""
    out = []
    for first, second, label, marks in TEXTS:
        text = first if second is None else first + " " + second
        e = tok(first, second, return_offsets_mapping=True, return_special_tokens_mask=True)
        shift = len(first) + 1
        offsets = []
        for (a, b), part in zip(e["offset_mapping"], e.sequence_ids(0)):
            offsets.append([a + shift, b + shift] if part == 1 else [a, b])
        rationale = [[text.index(m), text.index(m) + len(m)] for m in marks]
        out.append({
            "ids": e["input_ids"], "types": e["token_type_ids"], "special": e["special_tokens_mask"],
            "tokens": tok.convert_ids_to_tokens(e["input_ids"]), "offsets": offsets, "text": text,
            "label": label, "rationale": rationale,
        })
    return out


def roberta(rows):
    """The same words with RoBERTa's special tokens and no types."""
    ids = {0: 1, 1: 3, 2: 0, 3: 2, 4: 4}
    names = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    out = []
    for r in rows:
        r = {**r, "ids": [ids.get(i, i) for i in r["ids"]], "tokens": [names.get(t, t) for t in r["tokens"]]}
        if 1 in r["types"]:  # two separators stand between the texts
            k = r["types"].index(1) - 1
            for name in ("ids", "special", "tokens", "offsets"):
                r[name] = r[name][:k + 1] + r[name][k:]
        r["types"] = [0] * len(r["ids"])
        out.append(r)
    return out


def write(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        for r in rows:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")


def in_bytes(rows, size):
    """The texts byte by byte, the first of them; no byte is special."""
    out = []
    for r in rows:
        parts = [(k, c.encode()) for k, c in enumerate(r["text"])]
        ids = [b for _, part in parts for b in part][:size]
        n = len(ids)
        out.append({**r, "ids": ids, "types": [0] * n, "special": [0] * n,
                    "tokens": [f"{b:02x}" for b in ids],
                    "offsets": [[k, k + 1] for k, part in parts for _ in part][:n]})
    return out
