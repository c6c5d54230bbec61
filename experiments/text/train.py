"""Trains the sentiment classifier of this folder and writes every file beside it.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python train.py vaderSentiment-3.3.2.tar.gz [--out DIR] [--seed N] [--dev]

The archive has sentences rated by people: film and product reviews, tweets and
editorials, and a lexicon of rated words. A BERT of two layers learns their sign. It
writes reviews.onnx, tokenizer.json, reviews.csv, figure9.csv and rationales.csv into
DIR, the folder of this script unless told otherwise, and prints what README.md says.
--dev holds back 1,000 more reviews and only prints how many the net gets right: what
was chosen, was chosen by that. With the same versions on the same machine, the same
call gives the same files.

Needs torch, transformers, tokenizers, onnx and onnxruntime.
"""

import argparse
import copy
import csv
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
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

VOCABULARY, HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 6000, 64, 2, 4, 128, 128
EPOCHS, BATCH, RATE, DECAY, DROPOUT, AVERAGE = 6, 64, 1.5e-3, 0.05, 0.3, 0.998
MASKED, JOINED, OTHERS = 0.4, 0.25, 0.5
HELD, SHOWN, EXPLAINED = 1000, 200, 60
PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NEUTRAL = 0.5  # texts rated nearer to 0 are neither positive nor negative

NEGATIONS = {"no", "not", "never", "without", "hardly", "neither", "nor", "cannot", "lacks", "less"}

FIGURE9 = [
    ("I hate this movie and i never want to see it again ! However , I loved the leading actor so much !", "negative"),
    ("30 % good , 10 % too predictable , 60 % terrible . I guess davies won ' t be saving dr . feh after all .",
     "negative"),
    ("Pros : The actor performance was admiring . Cons : The script was embarrassing", "negative"),
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
            for line in files.extractfile(f"hutto_ICWSM_2014/{source}_GroundTruth.txt").read().decode().splitlines():
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
    """Learns a WordPiece vocabulary, lower case, with BERT's normalisation."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, min_frequency=2, special_tokens=SPECIAL, limit_alphabet=80, show_progress=False))
    assert [tokenizer.token_to_id(t) for t in SPECIAL] == [PAD, UNK, CLS, SEP, MASK]
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.enable_truncation(POSITIONS)
    return tokenizer


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
            more, other, weight2 = rows[order.pop()]
            if len(ids) + len(more) < POSITIONS:
                ids, rating, weight = ids[:-1] + more[1:], (rating + other) / 2, max(weight, weight2)
        out.append((ids, rating, weight))
    return out


def train(net, rows, epochs, seed):
    """Trains with AdamW and returns the running average of the weights. Words are
    masked at random, up to MASKED of a text, so that texts with words masked, as
    deletion and occlusion make them, are nothing new to the net."""
    average = copy.deepcopy(net)
    draw, noise = random.Random(seed), torch.Generator().manual_seed(seed)
    decays = [p for n, p in net.named_parameters() if p.ndim > 1]
    others = [p for n, p in net.named_parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}],
                                  lr=RATE, betas=(0.9, 0.98))
    steps, step, began = epochs * (len(rows) // BATCH), 0, time.time()
    for epoch in range(1, epochs + 1):
        net.train()
        texts = draw_epoch(rows, draw)
        chunks = [sorted(texts[k: k + BATCH * 20], key=lambda t: len(t[0])) for k in range(0, len(texts), BATCH * 20)]
        batches = [c[k: k + BATCH] for c in chunks for k in range(0, len(c), BATCH)]
        draw.shuffle(batches)
        loss_sum = 0.0
        for batch in batches:
            ids, mask = batch_of([t[0] for t in batch])
            hide = (torch.rand(ids.shape, generator=noise) < MASKED * torch.rand(len(ids), 1, generator=noise))
            ids = torch.where(hide & (ids > MASK), MASK, ids)
            y = torch.tensor([target(t[1]) for t in batch])
            weight = torch.tensor([t[2] for t in batch])
            logits = net(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids)).logits
            loss = -(weight[:, None] * torch.stack([1 - y, y], 1) * logits.log_softmax(1)).sum() / len(batch)
            for group in optimizer.param_groups:
                group["lr"] = RATE * min((step + 1) / (0.08 * steps), max(0.01, 0.5 + 0.5 * math.cos(math.pi * step / steps)))
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
        print(f"epoch {epoch:2d}  loss {loss_sum / len(batches):.4f}  {time.time() - began:.0f} s", flush=True)
    return average.eval()


@torch.no_grad()
def logits_of(net, rows):
    net.eval()
    out = torch.zeros(len(rows), 2)
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    for k in range(0, len(order), 128):
        ids, mask = batch_of([rows[i] for i in order[k: k + 128]])
        out[order[k: k + 128]] = net(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids)).logits
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
    """Prints the largest differences of the logits: of the file and the net, and of
    a text alone and one that padding makes longer."""
    session = onnxruntime.InferenceSession(str(path))
    rows = [tokenizer.encode(t).ids for t in texts]
    run = lambda rows: session.run(None, dict(zip(
        ["input_ids", "attention_mask", "token_type_ids"],
        [x.numpy() for x in (*batch_of(rows), torch.zeros_like(batch_of(rows)[0]))])))[0]
    alone, together = np.concatenate([run([r]) for r in rows]), run(rows)
    torch_ones = np.concatenate([logits_of(net, [r]).numpy() for r in rows])
    print(f"{len(rows)} texts of {min(map(len, rows))} to {max(map(len, rows))} tokens: ONNX - PyTorch "
          f"{abs(alone - torch_ones).max():.1e}, padded - alone {abs(together - alone).max():.1e}")
    assert abs(alone - torch_ones).max() < 1e-5 and abs(together - alone).max() < 1e-5


def rationale(text, label, lexicon):
    """Returns the spans, [first, after last) in characters, of the words that the
    lexicon rates at least 1 with the sign of the label, none of them negated."""
    words = [(m.group().lower(), m.span()) for m in re.finditer("[A-Za-z']+", text)]
    spans = []
    for k, (word, span) in enumerate(words):
        before = [w for w, _ in words[max(0, k - 3): k]]
        negated = any(w in NEGATIONS or w.endswith("n't") for w in before)
        rating = lexicon.get(word, 0) * (1 if label == "positive" else -1)
        if rating >= 1 and not negated:
            spans.append(list(span))
    return spans


def write_texts(out, held, lexicon):
    """Writes held-out reviews, half of them positive, Figure 9, and rationales."""
    named = [(f"review-{k:04d}", t, "positive" if r > 0 else "negative") for k, (t, r) in enumerate(held)]
    halves = [[n for n in named if n[2] == label][: SHOWN // 2] for label in ("negative", "positive")]
    shown = sorted(halves[0] + halves[1])
    for name, rows in (("reviews", shown), ("figure9", [(f"figure9-{k + 1}", *r) for k, r in enumerate(FIGURE9)])):
        with open(out / f"{name}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "text", "label"), *rows])
    found = [(*row, rationale(row[1], row[2], lexicon)) for row in shown]
    found = [row for row in found if row[3]][:EXPLAINED]
    with open(out / "rationales.jsonl", "w") as file:
        for row in found:
            file.write(json.dumps(dict(zip(("id", "text", "label", "rationale"), row)), ensure_ascii=False) + "\n")
    print(f"{len(shown)} reviews, {len(found)} rationales")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--dev", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

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
    print(f"{len(films)} film reviews, {len(others)} other texts and words, {tokenizer.get_vocab_size()} tokens, "
          f"{sum(p.numel() for p in net.parameters())} weights", flush=True)
    net = train(net, rows, args.epochs, args.seed)
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
    check(net, tokenizer, path, [t for t, _ in held[:50] + FIGURE9])
    tokenizer.save(str(args.out / "tokenizer.json"), pretty=False)
    write_texts(args.out, held, lexicon)
    print(f"{path.stat().st_size} bytes")
    for text, _ in FIGURE9:
        p = logits_of(net, [tokenizer.encode(text).ids]).softmax(1)[0, 1].item()
        print(f"positive: {p:.3f}  {text}")


if __name__ == "__main__":
    main()
