"""Trains the sentiment classifier of this folder and writes every file beside it.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python train.py vaderSentiment-3.3.2.tar.gz [--out DIR] [--seed N] [--dev]

The archive has sentences rated by people: film and product reviews, tweets and
editorials, and a lexicon of rated words. A BERT of two layers learns their sign. It
writes reviews.onnx, tokenizer.json, classes.txt, reviews.csv, rationales.jsonl and
figure9.jsonl into DIR, the folder of this script unless told otherwise, and prints what
README.md says. --dev holds back 1,000 more reviews and only prints how many the net
gets right: settings were chosen by that. With the same versions on the same machine,
the same call gives the same files.

Needs torch, transformers, tokenizers, onnx and onnxruntime.
"""

import argparse
import collections
import copy
import csv
import heapq
import html
import io
import json
import math
import pathlib
import random
import re
import tarfile
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

VOCABULARY, HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 6000, 64, 2, 4, 128, 128
EPOCHS, BATCH, RATE, DECAY, DROPOUT, AVERAGE = 4, 64, 1.5e-3, 0.05, 0.3, 0.998
MASKED, JOINED, OTHERS = 0.4, 0.25, 0.5
HELD, SHOWN = 1000, 200
PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NEUTRAL = 0.5  # reviews rated nearer to 0 are neither positive nor negative
STRONG, TELLING = 2.0, 1.5  # reviews that get a rationale, and its words, are rated so far from 0

NEGATIONS = {"no", "not", "never", "without", "hardly", "neither", "nor", "cannot", "lacks", "less"}

# The reviews of absLRP's Figure 9, which has no labels: a class each by our reading; the words that the figure
# highlights, and those of them that speak for a positive sentiment.
FIGURE9 = [
    ("I hate this movie and i never want to see it again ! However , I loved the leading actor so much !",
     "negative", ["hate", "never", "loved"], ["loved"]),
    ("30 % good , 10 % too predictable , 60 % terrible . I guess davies won ' t be saving dr . feh after all .",
     "negative", ["good", "terrible", "t"], ["good"]),
    ("Pros : The actor performance was admiring . Cons : The script was embarrassing",
     "negative", ["admiring", "embarrassing"], ["admiring"]),
]


def read(archive):
    """Returns {source: [(text, rating)]} and the lexicon, {word: rating}."""
    with tarfile.open(archive) as outer:
        names = {n.split("/")[-1]: n for n in outer.getnames()}
        inner = io.BytesIO(outer.extractfile(names["hutto_ICWSM_2014.tar.gz"]).read())
        lexicon = outer.extractfile(names["vader_lexicon.txt"]).read().decode()
    texts = {}
    with tarfile.open(fileobj=inner) as files:
        for source in ("movieReviewSnippets", "amazonReviewSnippets", "tweets", "nytEditorialSnippets"):
            rows, seen = [], set()
            file = files.extractfile(f"hutto_ICWSM_2014/{source}_GroundTruth.txt")
            for line in file.read().decode().splitlines():
                if not line.strip():
                    continue
                _, rating, text = line.split("\t")
                text = clean(text)
                if text.lower() not in seen:
                    seen.add(text.lower())
                    rows.append((text, float(rating)))
            texts[source] = rows
    words = {}
    for line in lexicon.splitlines():
        word, rating = line.split("\t")[:2]
        if re.fullmatch("[a-z]+", word):
            words[word] = float(rating)
    return texts, words


def clean(text):
    """Undoes what the files did to quotes, and drops doubled spaces."""
    text = html.unescape(text).replace("''", '"').replace("http://url_removed", "").replace("@anonymous", "")
    return " ".join(text.split())


def learn_tokens(texts):
    """Returns BERT's WordPiece tokeniser, lower case, with a vocabulary learned here:
    the trainers of tokenizers order equal counts at random."""
    normaliser, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts = collections.Counter(
        w for t in texts for w, _ in splitter.pre_tokenize_str(normaliser.normalize_str(t)) if len(w) <= 100)
    pieces = SPECIAL + learn_pieces(counts, VOCABULARY - len(SPECIAL))
    tokenizer = Tokenizer(models.WordPiece({p: k for k, p in enumerate(pieces)}, unk_token="[UNK]",
                                           max_input_chars_per_word=100))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normaliser, splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.enable_truncation(POSITIONS)
    return tokenizer


def learn_pieces(counts, size):
    """Joins, again and again, the two neighbours that occur most often in words, the
    first of the alphabet among equals; returns characters and joined pieces."""
    letters = collections.Counter()
    for word, n in counts.items():
        letters.update({c: n * word.count(c) for c in word})
    known = {c for c, n in letters.items() if n >= 20}
    words = [([c if k == 0 else "##" + c for k, c in enumerate(w)], n)
             for w, n in sorted(counts.items()) if known.issuperset(w)]
    pieces = sorted({p for w, _ in words for p in w})
    found, where = collections.Counter(), collections.defaultdict(set)

    def add(k, sign):
        word, n = words[k]
        for pair in zip(word, word[1:]):
            found[pair] += sign * n
            where[pair].add(k)

    for k in range(len(words)):
        add(k, 1)
    heap = [(-n, pair) for pair, n in found.items()]
    heapq.heapify(heap)
    have = set(pieces)
    while len(pieces) < size:
        n, pair = heapq.heappop(heap)
        if -n != found[pair]:  # it changed since it was pushed
            if found[pair] > 0:
                heapq.heappush(heap, (-found[pair], pair))
            continue
        joined = pair[0] + pair[1].removeprefix("##")
        if joined not in have:  # other neighbours may give the same piece
            have.add(joined)
            pieces.append(joined)
        for k in sorted(where.pop(pair)):
            add(k, -1)
            word, at = words[k][0], 0
            while at < len(word) - 1:
                if (word[at], word[at + 1]) == pair:
                    word[at: at + 2] = [joined]
                at += 1
            add(k, 1)
            for new in zip(word, word[1:]):
                if joined in new:
                    heapq.heappush(heap, (-found[new], new))
    return pieces


def batch_of(rows):
    """Pads lists of ids; returns ids and mask."""
    ids = torch.full((len(rows), max(map(len, rows))), PAD)
    for k, row in enumerate(rows):
        ids[k, : len(row)] = torch.tensor(row)
    return ids, (ids != PAD).long()


def target(rating):
    """Returns how positive a rating is, in [0.05, 0.95]."""
    return 0.5 + 0.45 * max(-1.0, min(1.0, rating / 1.5))


def draw_epoch(rows, draw):
    """Returns the texts of an epoch in drawn order, some joined to another one: so
    the net meets longer texts, and texts that say two things."""
    order = draw.sample(range(len(rows)), len(rows))
    out = []
    while order:
        ids, rating, weight = rows[order.pop()]
        if order and draw.random() < JOINED:
            more, other, most = rows[order.pop()]
            ids, rating, weight = (ids[:-1] + more[1:])[:POSITIONS], (rating + other) / 2, max(weight, most)
        out.append((ids, rating, weight))
    return out


def train(net, rows, seed):
    """Trains with AdamW and returns the running average of the weights. Words are
    masked at random, up to MASKED of a text, so that texts with words masked, as
    deletion and occlusion make them, are nothing new to the net."""
    average = copy.deepcopy(net)
    draw, noise = random.Random(seed), torch.Generator().manual_seed(seed)
    decays = [p for n, p in net.named_parameters() if p.ndim > 1]
    others = [p for n, p in net.named_parameters() if p.ndim <= 1]
    groups = [{"params": decays, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98))
    steps, step, began = EPOCHS * len(rows) / (1 + JOINED) / BATCH, 0, time.time()
    for epoch in range(1, EPOCHS + 1):
        net.train()
        texts = draw_epoch(rows, draw)
        near = BATCH * 20  # texts of a batch have about one length
        chunks = [sorted(texts[k: k + near], key=lambda t: len(t[0])) for k in range(0, len(texts), near)]
        batches = [c[k: k + BATCH] for c in chunks for k in range(0, len(c), BATCH)]
        draw.shuffle(batches)
        loss_sum = 0.0
        for batch in batches:
            ids, mask = batch_of([t[0] for t in batch])
            share = MASKED * torch.rand(len(ids), 1, generator=noise)
            hide = torch.rand(ids.shape, generator=noise) < share
            ids = torch.where(hide & (ids > MASK), MASK, ids)
            y = torch.tensor([target(t[1]) for t in batch])
            weight = torch.tensor([t[2] for t in batch])
            logits = net(ids, mask, torch.zeros_like(ids)).logits
            loss = -(weight[:, None] * torch.stack([1 - y, y], 1) * logits.log_softmax(1)).sum() / len(batch)
            done = min(step / steps, 1)
            for group in optimizer.param_groups:
                group["lr"] = RATE * min((step + 1) / (0.08 * steps), 0.5 + 0.5 * math.cos(math.pi * done))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            step += 1
            keep = min(AVERAGE, step / (step + 10))
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), net.parameters()):
                    slow.lerp_(fast, 1 - keep)
            loss_sum += loss.item()
        print(f"epoch {epoch}  loss {loss_sum / len(batches):.4f}  {time.time() - began:.0f} s", flush=True)
    return average.eval()


@torch.no_grad()
def logits_of(net, rows):
    net.eval()
    out = torch.zeros(len(rows), 2)
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    for k in range(0, len(order), 128):
        ids, mask = batch_of([rows[i] for i in order[k: k + 128]])
        out[order[k: k + 128]] = net(ids, mask, torch.zeros_like(ids)).logits
    return out


def right(net, tokenizer, rows):
    """Returns how many texts get the sign of their rating."""
    ids = [e.ids for e in tokenizer.encode_batch([t for t, _ in rows])]
    return sum((r > 0) == (l[1] > l[0]).item() for (_, r), l in zip(rows, logits_of(net, ids)))


def export(net, path):
    """Writes the net as ONNX, its larger weights as float16 that a Cast makes
    float32: half the bytes, and all is computed in float32."""
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {n: {0: "batch_size", 1: "sequence_length"} for n in names} | {"logits": {0: "batch_size"}}
    ids = torch.full((2, 8), MASK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(path), dynamo=False,
                          opset_version=17, input_names=names, output_names=["logits"], dynamic_axes=axes)
    model = onnx.load(path)
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and math.prod(tensor.dims) >= 1024:
            name, value = tensor.name, numpy_helper.to_array(tensor)
            assert (value.astype(np.float16) == value).all(), name
            tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float16), name + ".f16"))
            casts.append(helper.make_node("Cast", [name + ".f16"], [name], name + ".cast", to=TensorProto.FLOAT))
    for node in reversed(casts):
        model.graph.node.insert(0, node)
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def check(net, tokenizer, path, texts):
    """Prints the largest differences of logits: of the file and the net, and of
    texts padded to one length and each of them alone."""
    session = onnxruntime.InferenceSession(str(path))

    def run(rows):
        ids, mask = batch_of(rows)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
        return session.run(None, {name: value.numpy() for name, value in feed.items()})[0]

    rows = [tokenizer.encode(t).ids for t in texts]
    alone = np.concatenate([run([r]) for r in rows])
    off = abs(alone - np.concatenate([logits_of(net, [r]).numpy() for r in rows])).max()
    padded = abs(run(rows) - alone).max()
    print(f"{len(rows)} texts of {min(map(len, rows))} to {max(map(len, rows))} tokens: "
          f"ONNX - PyTorch {off:.1e}, padded - alone {padded:.1e}")
    assert off < 1e-5 and padded < 1e-5


def rationale(text, label, lexicon):
    """Returns the spans, [first, after last) in characters, of the words that the
    lexicon rates far from 0 with the sign of the label, none of them negated."""
    words = [(m.group().lower(), m.span()) for m in re.finditer("[A-Za-z']+", text)]
    spans = []
    for k, (word, span) in enumerate(words):
        before = [w for w, _ in words[max(0, k - 3): k]]
        negated = any(w in NEGATIONS or w.endswith("n't") for w in before)
        rating = lexicon.get(word, 0) * (1 if label == "positive" else -1)
        if rating >= TELLING and not negated:
            spans.append(list(span))
    return spans


def write_texts(out, held, lexicon):
    """Writes held-out reviews, half of them positive, rationales, and Figure 9."""
    named = [(f"review-{k:04d}", t, "positive" if r > 0 else "negative", r) for k, (t, r) in enumerate(held)]
    halves = [[n for n in named if n[2] == label][: SHOWN // 2] for label in ("negative", "positive")]
    shown = sorted(halves[0] + halves[1])
    with open(out / "reviews.csv", "w", newline="") as file:
        rows = [("id", "text", "label"), *(row[:3] for row in shown)]
        csv.writer(file, lineterminator="\n").writerows(rows)
    found = [(*row[:3], rationale(row[1], row[2], lexicon)) for row in shown if abs(row[3]) >= STRONG]
    found = [row for row in found if row[3]]
    figure = []
    for k, (text, label, words, positive) in enumerate(FIGURE9):
        spans = {w: list(re.search(rf"\b{w}\b", text).span()) for w in words}
        figure.append((f"figure9-{k + 1}", text, label, list(spans.values()), [spans[w] for w in positive],
                       [spans[w] for w in words if w not in positive]))
    for name, rows in (("rationales", found), ("figure9", figure)):
        with open(out / f"{name}.jsonl", "w") as file:
            for row in rows:
                line = dict(zip(("id", "text", "label", "rationale", "positive", "negative"), row))
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    (out / "classes.txt").write_text("negative\npositive\n")
    print(f"{len(shown)} reviews, {len(found)} of them with a rationale")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dev", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    began = time.time()
    texts, lexicon = read(args.archive)
    reviews = [r for r in texts.pop("movieReviewSnippets") if abs(r[1]) >= NEUTRAL]
    random.Random(32).shuffle(reviews)
    held, films = reviews[:HELD], reviews[HELD:]
    if args.dev:
        held, films = films[:HELD], films[HELD:]
    kept = {t.lower() for t, _ in held}
    others = [(t, r) for rows in texts.values() for t, r in rows if t.lower() not in kept]
    others += list(lexicon.items())
    tokenizer = learn_tokens([t for t, _ in films + others])
    rows = [(tokenizer.encode(t).ids, r, 1.0) for t, r in films]
    rows += [(tokenizer.encode(t).ids, r, OTHERS) for t, r in others]

    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=WIDE, max_position_embeddings=POSITIONS,
        hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT, pad_token_id=PAD,
        attn_implementation="eager")
    net = BertForSequenceClassification(config)
    print(f"{len(films)} film reviews, {len(others)} other texts and words, "
          f"{sum(p.numel() for p in net.parameters())} weights", flush=True)
    net = train(net, rows, args.seed)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.half().float())
    for name, part in (("held-out", held), ("training", films)):
        n = right(net, tokenizer, part)
        print(f"right of {len(part)} {name} reviews: {n} ({n / len(part):.1%})", flush=True)
    if args.dev:
        return
    path = args.out / "reviews.onnx"
    export(net, path)
    check(net, tokenizer, path, [row[0] for row in held[:50] + FIGURE9])
    tokenizer.save(str(args.out / "tokenizer.json"), pretty=False)
    write_texts(args.out, held, lexicon)
    print(f"{path.stat().st_size} bytes, {time.time() - began:.0f} s")
    for text, *_ in FIGURE9:
        p = logits_of(net, [tokenizer.encode(text).ids]).softmax(1)[0, 1].item()
        print(f"positive: {p:.3f}  {text}")


if __name__ == "__main__":
    main()
