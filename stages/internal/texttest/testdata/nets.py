"""Text classifiers with random weights, and their exports.

    python nets.py

writes NAME.EXPORTER.onnx.gz for the networks of NETS, and NAME.jsonl for those and for own_test.go's. Made with
torch 2.15.0, transformers 4.57.6, onnxscript 0.7.2, optimum-onnx 0.1.0 and onnxruntime 1.32.0. The weights are
far from zero, so that relevance is far from uniform, and exact in half precision, so that all exports of a
network have the same.
"""
import functools
import gzip
import tempfile
import zlib
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers

import texts

HERE = Path(__file__).parent
LENGTH = 40
SIZE = dict(vocab_size=len(texts.VOCABULARY), num_labels=3)
BLOCKS = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
              max_position_embeddings=LENGTH)
DEBERTA = dict(relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
               pos_att_type=["p2c", "c2p"], type_vocab_size=0, position_biased_input=False)

# A network: its class in transformers, what its configuration changes, and its exporters with their opsets.
NETS = {
    "bert": ("Bert", {**SIZE, **BLOCKS}, {"trace": 14, "dynamo": 18, "optimum": 17}),
    "distilbert": ("DistilBert", {**SIZE, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37,
                                  "max_position_embeddings": LENGTH, "num_labels": 2},
                   {"trace": 11, "optimum": 16}),
    "roberta": ("Roberta", {**SIZE, **BLOCKS, "max_position_embeddings": LENGTH + 2, "type_vocab_size": 1,
                            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
                {"dynamo": 20, "optimum": 14}),
    "deberta": ("DebertaV2", {**SIZE, **BLOCKS, **DEBERTA, "num_attention_heads": 2},
                {"optimum": 15}),
    "electra": ("Electra", {**SIZE, **BLOCKS, "embedding_size": 24, "num_labels": 2}, {"dynamo": 18}),
    "mpnet": ("MPNet", {**SIZE, **BLOCKS, "max_position_embeddings": LENGTH + 2, "pad_token_id": 1},
              {"trace": 17}),
}
OWN = ("fixed", "bag", "bytes")
TYPED = ("bert", "electra", "fixed")  # the networks that read token types
ROBERTA = ("roberta", "mpnet")  # the networks that read RoBERTa's special tokens


def config(name):
    kind, changes, _ = NETS[name]
    return getattr(transformers, kind + "Config")(**changes)


def build(name, attention=None):
    """The network, with the weights that a seed of its name draws."""
    torch.manual_seed(zlib.crc32(name.encode()))
    kind, _, _ = NETS[name]
    c = config(name)
    if attention:
        c._attn_implementation = attention
    net = getattr(transformers, kind + "ForSequenceClassification")(c).eval()
    for key, w in sorted(net.state_dict().items()):
        if not w.is_floating_point():
            continue
        v = torch.randn(w.shape, dtype=torch.float64)
        if "LayerNorm" in key or "layer_norm" in key or "norm" in key.lower():
            v = 0.2 * v + (1 if key.endswith("weight") else 0)
        elif "word_embeddings" in key:
            pass
        elif "embeddings" in key and "project" not in key or "relative_attention_bias" in key:
            v = 0.5 * v
        elif key.endswith("bias"):
            v = 0.2 * v
        else:
            v = 1.6 * v / w.shape[1] ** 0.5
        w.copy_(v.half().to(w.dtype))
    spread(net, [feeds(name, r) for r in rows(name)])
    return net


@torch.no_grad()
def spread(net, inputs):
    """Scales the last layer so that the texts have different classes, and none of them is certain."""
    last = getattr(net.classifier, "out_proj", net.classifier)
    logits = torch.cat([net(**x).logits for x in inputs])
    factor = 1.5 / logits.std(0)
    last.weight.copy_((last.weight * factor[:, None]).half().float())
    last.bias.copy_(((last.bias - logits.mean(0)) * factor).half().float())


@functools.cache
def rows(name):
    """The texts in the network's tokens."""
    with tempfile.TemporaryDirectory() as folder:
        out = texts.lines(texts.tokenizer(Path(folder)))
    if name in ROBERTA:
        return texts.roberta(out)
    if name == "bytes":
        return texts.in_bytes(out, 64)
    return out if name in TYPED else [{**r, "types": [0] * len(r["ids"])} for r in out]


def feeds(name, row):
    """A text as the network's inputs by name."""
    ids = torch.tensor([row["ids"]])
    out = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if name in TYPED:
        out["token_type_ids"] = torch.tensor([row["types"]])
    return out


def trace(net, example, path, opset):
    free = {k: {0: "batch", 1: "length"} for k in example}
    torch.onnx.export(net, tuple(example.values()), path, input_names=list(example), output_names=["logits"],
                      dynamic_axes={**free, "logits": {0: "batch"}}, opset_version=opset, dynamo=False)


def dynamo(net, example, path, opset):
    d = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=LENGTH)}
    example = {k: v.expand(2, -1).clone() for k, v in example.items()}
    program = torch.onnx.export(net, (), kwargs=example, dynamic_shapes={k: d for k in example},
                                input_names=list(example), output_names=["logits"], opset_version=opset,
                                dynamo=True)
    program.save(path)


def optimum(net, example, path, opset):
    from optimum.exporters.onnx import onnx_export_from_model

    with tempfile.TemporaryDirectory() as folder:
        onnx_export_from_model(net, folder, opset=opset, task="text-classification", do_validation=False)
        Path(path).write_bytes((Path(folder) / "model.onnx").read_bytes())


def strip(path):
    """Leaves out what exporters note of their own source."""
    m = onnx.load(path)
    del m.metadata_props[:]
    graphs = [m.graph] + [f for f in m.functions]
    for g in graphs:
        del g.metadata_props[:]
        for n in g.node:
            n.ClearField("doc_string")
            del n.metadata_props[:]
            for a in n.attribute:
                if a.HasField("g"):
                    graphs.append(a.g)
        if isinstance(g, onnx.GraphProto):
            for v in [*g.value_info, *g.input, *g.output, *g.initializer]:
                del v.metadata_props[:]
            del g.value_info[:]
    onnx.save(m, path)


def half(path, out):
    """Half precision as it is published: weights and inner values, with inputs and outputs as they were."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), out)


def int8(path, out):
    """ONNX Runtime's dynamic quantisation, which also stores the embeddings as 8-bit numbers."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(path, out, weight_type=QuantType.QInt8)


def main():
    for name in [*NETS, *OWN]:
        texts.write(HERE / f"{name}.jsonl", rows(name))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, (_, _, exporters) in NETS.items():
            for exporter, opset in exporters.items():
                attention = "eager" if opset < 14 else None  # which fused attention needs
                globals()[exporter](build(name, attention), feeds(name, rows(name)[4]),
                                    str(folder / f"{name}.{exporter}.onnx"), opset)
        bert = str(folder / "bert.optimum.onnx")
        half(bert, str(folder / "bert.half.onnx"))
        int8(bert, str(folder / "bert.int8.onnx"))
        for path in sorted(folder.glob("*.onnx")):
            strip(path)
            (HERE / (path.name + ".gz")).write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main()
