"""What the networks of nets.py and own_test.go have, by independent implementations in double precision.

    python goldens.py

writes goldens.npz, with torch 2.15.0, transformers 4.57.6, captum 0.9.0, scipy 1.17.1, scikit-learn 1.9.1 and
lxt 2.1. An array is called NETWORK.WHAT. Its rows are the texts, or the tokens of all texts one after the other:

    logits, target         and the class of the largest logit, which all that follows explains
    gradient.AT.sum, .abs  of the target's logit, the sum over the components of a token and that of magnitudes,
                           AT the words' embeddings (of bytes with the bias), or what the layer normalisation
                           makes of all embeddings
    ixg.AT, .abs           input times gradient, and the sum of its magnitudes; placed is the sum of all
                           embeddings before that normalisation
    ig.B, delta.B          captum's integrated gradients at the words' embeddings, Gauss-Legendre, 50 steps, and its
                           convergence delta; B are the tokens of the baseline where the text's aren't special, pad
                           or mask, or zero embeddings; zero.all has these for special tokens too
    attention.K            of text K, [blocks, heads, tokens, tokens], of BERT alone
    raw, rollout           the first token's row of the last block's attention, the mean over heads, and of the
                           product of I + attention, each row divided by its sum, of all blocks; of fixed, whose
                           head averages the tokens of a text, the mean of their rows
    loo.S, loo.S.p         the drop of the logit and of the probability when a token gives way, S mask, pad or
                           removal; NaN at special tokens
    shapley                of the logit, with mask for the tokens outside a subset, over all subsets; NaN at special
                           tokens and in texts with more than ten others
    comp.S, suff.S         [texts, 10]: the drop of the probability when ⌊k/10·n⌋ of the n tokens that aren't special
                           give way, or all others do, the largest of ixg.words first and positive ones alone; NaN
                           without any
    aopc.comp.S, .suff.S   their mean over sets that differ
    tau.S                  Kendall's of ixg.words and loo.S.p
    auprc, ap, f1, iou     of the positive part of ixg.words and the rationale; f1 and iou of the five largest; the
                           area is of trapezoids, ap is the average precision
    attnlrp                lxt's, of BERT alone, at the words' embeddings; where an embedding and its type's sum to
                           exactly 0, as in one place of text 7, it has no share of that sum: 0/0 is 0 in LRP

ferret 0.4.2 defines comp to iou so, except that it decodes the ids that remain and tokenises that text anew, which
makes other tokens ([UNK] and pieces that start with ## become other ones), that it takes the separator of a pair for
a token of the text, and that texts without a positive score have 0 and 1 there, not NaN.
"""
import gzip
import itertools
import math
import warnings

import numpy as np
import onnx
import torch
from captum.attr import IntegratedGradients, LayerIntegratedGradients
from onnx import numpy_helper
from scipy.stats import kendalltau
from sklearn.metrics import auc, average_precision_score, precision_recall_curve
from torch import nn
from torch.nn import functional as F

import nets

torch.manual_seed(0)
warnings.filterwarnings("ignore")
MOST = 10  # tokens of exact Shapley values


class Out:
    def __init__(self, logits):
        self.logits = logits


class Own(nn.Module):
    """A network of own_test.go, by the weights in its file."""

    def __init__(self, name):
        super().__init__()
        m = onnx.load_model_from_string(gzip.decompress((nets.HERE / f"{name}.own.onnx.gz").read_bytes()))
        self.w = {t.name: torch.tensor(numpy_helper.to_array(t)).double() for t in m.graph.initializer
                  if t.data_type == onnx.TensorProto.FLOAT}
        table = self.w["table"] + self.w["table.bias"] if name == "bytes" else self.w["words.weight"]
        self.words = nn.Embedding(*table.shape, _weight=table)
        self.norm = nn.LayerNorm(32, eps=float(np.float32(1e-12)), dtype=torch.float64)

    def get_input_embeddings(self):
        return self.words

    def linear(self, name, x):
        return x @ self.w[name + ".weight"] + self.w[name + ".bias"]

    def layer_norm(self, name, x):
        return F.layer_norm(x, (32,), self.w[name + ".weight"], self.w[name + ".bias"], self.norm.eps)


class Fixed(Own):
    def __init__(self, name):
        super().__init__(name)
        self.norm.weight.data = self.w["embeddings.weight"]
        self.norm.bias.data = self.w["embeddings.bias"]

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.words(input_ids) + self.w["types.weight"][token_type_ids] + self.w["positions"]
        x = self.norm(x)
        mask = (attention_mask == 0).double()[:, None, None] * -10000
        self.attention = []
        for i in range(2):
            name = f"block{i}"
            q, k, v = (self.linear(f"{name}.{p}", x).view(*x.shape[:2], 4, 8).transpose(1, 2)
                       for p in ("query", "key", "value"))
            a = (q @ k.transpose(2, 3) * self.w[name + ".scale"] + mask).softmax(-1)
            self.attention.append(a[0].detach())
            y = self.linear(name + ".output", (a @ v).transpose(1, 2).reshape(x.shape))
            x = self.layer_norm(name + ".norm1", x + y)
            h = F.gelu(self.linear(name + ".up", x), approximate="tanh")
            x = self.layer_norm(name + ".norm2", x + self.linear(name + ".down", h))
        shown = attention_mask[..., None].double()
        mean = (x * shown).sum(1) / shown.sum(1)
        return Out(self.linear("logits", torch.tanh(self.linear("pooler", mean))))


class Bag(Own):
    def forward(self, ids):
        x = F.conv1d(self.words(ids).transpose(1, 2), self.w["conv.weight"], self.w["conv.bias"], padding=1)
        return Out(F.relu(x).mean(2) @ self.w["logits.weight"] + self.w["logits.bias"])


class Bytes(Own):
    def forward(self, bytes):
        x = F.gelu(self.words(bytes), approximate="tanh").transpose(1, 2)
        x = F.gelu(F.conv1d(x, self.w["conv.weight"], self.w["conv.bias"]), approximate="tanh")
        # Text 7 has the same five bytes twice: the first of equal maxima has the derivative, as in pooling.
        return Out(F.max_pool1d(x, x.shape[2])[..., 0] @ self.w["logits.weight"] + self.w["logits.bias"])


class Net:
    """A network and how its texts become inputs."""

    def __init__(self, name):
        self.name = name
        own = {"fixed": Fixed, "bag": Bag, "bytes": Bytes}
        self.net = own[name](name) if name in own else nets.build(name, "eager").double()
        self.net.requires_grad_(False)
        self.words = self.net.get_input_embeddings()
        self.pad = {"roberta": 1, "mpnet": 1, "bytes": 256}.get(name, 0)
        self.mask = None if name == "bytes" else 4
        self.norm = next((m for k, m in self.net.named_modules() if k.endswith("embeddings.LayerNorm")),
                         self.net.norm if name == "fixed" else None)

    def feeds(self, rows, length=None):
        """The inputs, a row a text of ids and types, all of one length."""
        n = len(rows[0][0])
        length = length or {"fixed": 32, "bytes": 64}.get(self.name, n)
        fill = lambda k, v: torch.tensor([list(r[k]) + [v] * (length - n) for r in rows])
        ids = fill(0, self.pad)
        shown = torch.tensor([[1] * n + [0] * (length - n)] * len(rows))
        if self.name in ("bag", "bytes"):
            return (ids,)
        return (ids, shown, fill(1, 0)) if self.name in nets.TYPED else (ids, shown)

    def __call__(self, *inputs):
        return self.net(*inputs).logits

    def p(self, rows):
        with torch.no_grad():
            return self(*self.feeds(rows)).numpy()

    def tapped(self, inputs, target):
        """Values and gradients of the target's logit: the words, all embeddings, and these normalised."""
        taps, hooks = {}, []

        def keep(name):
            def hook(_, value):
                value = value[0] if isinstance(value, tuple) else value
                value = value.detach().requires_grad_(True) if name == "words" else value
                value.retain_grad()
                taps[name] = value
                return value
            return hook

        hooks.append(self.words.register_forward_hook(lambda m, _, y: keep("words")(m, y)))
        if self.norm is not None:
            hooks.append(self.norm.register_forward_pre_hook(lambda m, x: (keep("placed")(m, x),)))
            hooks.append(self.norm.register_forward_hook(lambda m, _, y: keep("embeddings")(m, y)))
        self(*inputs)[0, target].backward()
        for h in hooks:
            h.remove()
        return {k: (v.detach()[0], v.grad[0]) for k, v in taps.items()}

    def integrated(self, inputs, target, hidden, n):
        """captum's integrated gradients from the ids of a baseline, or from embeddings."""
        f = lambda ids, *rest: self(ids, *rest)
        out = {}
        for name in ("pad", "mask"):
            token = getattr(self, name)
            if token is None:
                continue
            start = inputs[0].clone()
            start[0, :n][hidden] = token
            a, delta = LayerIntegratedGradients(f, self.words).attribute(
                inputs[0], start, target=target, additional_forward_args=inputs[1:] or None, n_steps=50,
                method="gausslegendre", return_convergence_delta=True)
            out[name] = a[0].sum(-1), delta.item()
        x = self.words(inputs[0])

        def at(x):
            h = self.words.register_forward_hook(lambda *_: x)
            y = self(*[v.expand(len(x), -1) for v in inputs])
            h.remove()
            return y

        kept = x.clone()
        kept[0, :n][hidden] = 0
        none = torch.zeros_like(x)
        if self.name == "bytes":
            none[:, n:] = x[:, n:]
        for name, start in (("zero", kept), ("zero.all", none)):
            a, delta = IntegratedGradients(at).attribute(x, start, target=target, n_steps=50,
                                                         method="gausslegendre", return_convergence_delta=True)
            out[name] = a[0].sum(-1), delta.item()
        return out

    def substrates(self):
        return ["pad", "removal"] if self.mask is None else ["mask", "pad", "removal"]

    def without(self, row, gone, substrate):
        """A text whose tokens of a set give way."""
        if substrate == "removal":
            rest = [k for k in range(len(row["ids"])) if k not in gone]
            return [row["ids"][k] for k in rest], [row["types"][k] for k in rest]
        token = getattr(self, substrate)
        return [token if k in gone else v for k, v in enumerate(row["ids"])], row["types"]


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def shapley(net, row, free, target):
    """Of the target's logit, over all subsets of the free tokens."""
    out = np.full(len(row["ids"]), np.nan)
    n = len(free)
    if n > MOST or net.mask is None:
        return out
    sets = [frozenset(s) for k in range(n + 1) for s in itertools.combinations(free, k)]
    value = dict(zip(sets, net.p([net.without(row, set(free) - s, "mask") for s in sets])[:, target]))
    for i in free:
        out[i] = sum((value[s | {i}] - value[s]) / (n * math.comb(n - 1, len(s))) for s in sets if i not in s)
    assert abs(out[free].sum() - value[frozenset(free)] + value[frozenset()]) < 1e-12
    return out


def rationales(row):
    """The tokens that share a character with a marked span."""
    return np.array([any(max(a, s) < min(b, e) for s, e in row["rationale"]) for a, b in row["offsets"]])


def faithful(net, row, free, target, scores, p, loo):
    out = {}
    order = sorted((k for k in free if scores[k] > 0), key=lambda k: -scores[k])
    tops = [frozenset(order[:k * len(free) // 10]) for k in range(1, 11)]
    for s in net.substrates():
        drop = lambda gone: p - softmax(net.p([net.without(row, gone, s)]))[0, target]
        for name, gone in (("comp", lambda t: t), ("suff", lambda t: set(free) - t)):
            curve = np.array([drop(gone(t)) if t else np.nan for t in tops])
            out[f"{name}.{s}"] = curve
            distinct = [v for k, v in enumerate(curve) if tops[k] and (k == 0 or tops[k] != tops[k - 1])]
            out[f"aopc.{name}.{s}"] = np.mean(distinct) if distinct else np.nan
        out[f"tau.{s}"] = kendalltau(loo[s][free], scores[free])[0] if len(free) > 1 else np.nan
    return out


def plausible(row, free, scores):
    truth, positive = rationales(row)[free], np.maximum(scores[free], 0)
    precision, recall, _ = precision_recall_curve(truth, positive)
    top = [k for k in np.argsort(-scores[free])[:5] if scores[free][k] > 0]
    chosen = np.isin(np.arange(len(free)), top)
    both, either = (truth & chosen).sum(), (truth | chosen).sum()
    return {"auprc": auc(recall, precision), "ap": average_precision_score(truth, positive),
            "f1": 2 * both / (truth.sum() + chosen.sum()), "iou": both / either}


def padded(net, row, target, taps):
    """The law: a text that is filled up has the same logits, and no gradient at what fills it up."""
    n, length = len(row["ids"]), 32 if net.name == "fixed" else nets.LENGTH
    inputs = net.feeds([(row["ids"], row["types"])], length)
    assert np.abs(net(*inputs).numpy() - net.p([(row["ids"], row["types"])])).max() < 1e-12
    for name, (_, g) in net.tapped(inputs, target).items():
        assert (g[n:] == 0).all() and (g[:n] - taps[name][1][:n]).abs().max() < 1e-11, (net.name, name)


def attention(net, inputs, n):
    """[blocks, heads, tokens, tokens], and the rows that the classes are read from of what raw attention and rollout
    are: the first token's, or where all n of a text are read the mean of theirs."""
    if net.name == "fixed":
        net(*inputs)
        a, read = torch.stack(net.net.attention), range(n)
    else:
        a, read = torch.stack(net.net(*inputs, output_attentions=True).attentions)[:, 0], range(1)
    product = torch.eye(a.shape[-1], dtype=a.dtype)
    for block in a.mean(1):
        block = block + torch.eye(len(block))
        product = block / block.sum(-1, keepdim=True) @ product
    return a, a[-1].mean(0)[read].mean(0)[:n], product[read].mean(0)[:n]


def network(name):
    net, out = Net(name), {}

    def put(key, value):
        out.setdefault(key, []).append(np.asarray(value))

    for k, row in enumerate(nets.rows(name)):
        n = len(row["ids"])
        inputs = net.feeds([(row["ids"], row["types"])])
        z = net.p([(row["ids"], row["types"])])
        target = int(z[0].argmax())
        put("logits", z)
        put("target", [target])
        taps = net.tapped(inputs, target)
        for at, (x, g) in taps.items():
            if at != "placed":
                put(f"gradient.{at}.sum", g[:n].sum(-1))
                put(f"gradient.{at}.abs", g[:n].abs().sum(-1))
            put(f"ixg.{at}", (x * g)[:n].sum(-1))
            put(f"ixg.{at}.abs", (x * g)[:n].abs().sum(-1))
        if name not in ("bag", "bytes"):
            padded(net, row, target, taps)
        free = [i for i in range(n) if not row["special"][i]]
        for b, (a, delta) in net.integrated(inputs, target, np.array(free), n).items():
            put("ig." + b, a[:n].detach())
            put("delta." + b, [delta])
        if name not in ("bag", "bytes"):
            a, raw, rollout = attention(net, inputs, n)
            put("raw", raw)
            put("rollout", rollout)
            if name == "bert" and k in (0, 1, 4):
                out[f"attention.{k}"] = [a]
        p, loo = softmax(z)[0, target], {}
        for s in net.substrates():
            drops = np.full((2, n), np.nan)
            for i in free:
                y = net.p([net.without(row, {i}, s)])
                drops[:, i] = z[0, target] - y[0, target], p - softmax(y)[0, target]
            put("loo." + s, drops[0])
            put(f"loo.{s}.p", drops[1])
            loo[s] = drops[1]
        put("shapley", shapley(net, row, free, target))
        x, g = taps["words"]
        scores = (x * g)[:n].sum(-1).numpy()
        for key, v in {**faithful(net, row, free, target, scores, p, loo), **plausible(row, free, scores)}.items():
            put(key, np.asarray(v)[None])
    return {f"{name}.{k}": np.concatenate(v) for k, v in out.items()}


def attnlrp(out):
    """lxt patches the classes of transformers, for good."""
    import transformers.models.bert.modeling_bert as modeling
    from lxt.efficient import monkey_patch

    weights = nets.build("bert").state_dict()
    monkey_patch(modeling)
    c = nets.config("bert")
    c._attn_implementation = "sdpa"
    c.position_embedding_type = "absolute"
    bert = modeling.BertForSequenceClassification(c).eval().double()
    bert.load_state_dict(weights)
    bert.requires_grad_(False)
    net = Net("bert")
    net.net, net.words, net.norm = bert, bert.get_input_embeddings(), None
    values = []
    for k, row in enumerate(nets.rows("bert")):
        inputs = net.feeds([(row["ids"], row["types"])])
        assert np.abs(net(*inputs).numpy() - out["bert.logits"][k]).max() < 1e-9
        x, g = net.tapped(inputs, int(out["bert.target"][k]))["words"]
        both = x + bert.bert.embeddings.token_type_embeddings(torch.tensor(row["types"]))
        values.append((x * g * (both != 0)).sum(-1).numpy())
    out["bert.attnlrp"] = np.concatenate(values)


def main():
    out = {}
    for name in [*nets.NETS, *nets.OWN]:
        out.update(network(name))
    attnlrp(out)
    exact = ("logits", "aopc", "tau", "auprc", "ap", "f1", "iou")
    for k, v in out.items():
        if v.dtype == np.float64 and k.split(".")[1] not in exact:
            out[k] = v.astype(np.float32)  # far finer than what the networks compute in
        print(k, out[k].shape, out[k].dtype, np.abs(np.nan_to_num(v)).max())
    np.savez_compressed(nets.HERE / "goldens.npz", **out)


if __name__ == "__main__":
    main()
