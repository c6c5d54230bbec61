"""Reference maps of attention and its gradients, in double precision.

    python attention_maps.py ROOT attention_maps.json

ROOT is the project's folder, beside which the shared nets lie. Made with torch 2.15.0,
torchvision 0.29.2, torchcam 0.5.0, timm 1.0.31 and numpy 2.4.6, of the papers' definitions:
the attention of each block is kept, and differentiated by autograd; matrices are multiplied
whole. Images are formulas, and class 3 is explained.

  - generic-attention: R = I, R + mean of heads of max(∇A ⊙ A, 0)·R (Chefer et al., ICCV 2021,
    equations 5 and 6), from block START on; the row of the class token at the patches.
  - legrad: each block is run again from its own tokens, and the head, with its norm, explains
    the mean of the block's tokens: the mean over heads and queries of max(∇A, 0), the sum over
    blocks from START on, at the patches (Bousselham et al., ICCV 2025). Of torchvision's
    vision transformer it is what torch-cam has before it stretches it, times the blocks.
  - grad-eclip: the last block is run again from its queries, keys and values, and the sum over
    channels of ∂f/∂o·v is taken at the output o of its attention at the class token, before the
    projection; times the cosine of query and keys, from 0 to 1 over the patches, if positive
    (Zhao et al., ICML 2024). START is that of the other methods.
  - transition-attention: s·W, s the class token's row of the last block's attention, s·A + s through
    the blocks before it down to START, W the mean of heads of max(mean of ∇A over STEPS images, 0)
    (Yuan et al., 2021, equations 6 to 9).

With a backward pass, ∇A is that of a net of which parts are detached, by the definitions of
LibraGrad (CVPR 2025): balanced has each block's attention as a constant, with its own
derivative, deviations as constants and activations y = x·(y/x); attn-lrp has these, softmax
in the graph, and half of either factor of both products of attention.
"""
import json
import sys
import types
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import timm
import torch
import torch.nn.functional as F
from torchcam.methods import LeGrad
from torchvision.models import vision_transformer

ROOT = Path(sys.argv[1]).resolve()
sys.path += [str(ROOT / "experiments/quickstart"), str(ROOT / "stages/internal/program/zoo")]
import nets  # noqa: E402
import train  # noqa: E402
import zoo  # noqa: E402

torch.set_default_dtype(torch.float64)
TARGET, STEPS = 3, 3
GELU, MATMUL, SOFTMAX = F.gelu, torch.Tensor.__matmul__, torch.Tensor.softmax


def gelu(x, **_):
    return x * torch.where(x == 0, 0.5, GELU(x) / x).detach()


def layer_norm(x, shape, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt().detach() * weight + bias


def halved(a, b):
    y = MATMUL(a, b)
    return y / 2 + (y / 2).detach() if a.requires_grad and b.requires_grad else y


def patched(backward, *also):
    """Has the functions of a backward pass in the place of torch's, and others."""
    patches = list(also)
    if backward != "plain":
        patches += [(F, "gelu", gelu), (F, "layer_norm", layer_norm)]
    if backward == "attn-lrp":
        patches.append((torch.Tensor, "__matmul__", halved))
    stack = ExitStack()
    for patch in patches:
        stack.enter_context(mock.patch.object(*patch))
    return stack


def image(side):
    """The picture of paths.py."""
    i, j = np.mgrid[0:side, 0:side]
    x = np.stack([(i * (2 + c) + j * (3 + 2 * c) + i * j // 9) % 256 for c in range(3)])
    return torch.tensor(x[None] / 255.0)


def kept(run, backward="plain"):
    """What run returns, and the attention of each block in it."""
    found = []

    def keep(t, *args, **kwargs):
        a = SOFTMAX(t, *args, **kwargs)
        found.append(a.detach().requires_grad_() if backward == "balanced" else a)
        return found[-1]

    def attend(q, k, v, *args, **kwargs):
        return keep((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1), -1) @ v

    with patched(backward, (torch.Tensor, "softmax", keep), (F, "scaled_dot_product_attention", attend)):
        return run(), found


def explained(y, probability):
    return (y.softmax(-1) if probability else y)[0, TARGET]


def generic(net, x, start, probability, backward="plain"):
    y, attention = kept(lambda: net(x), backward)
    slopes = torch.autograd.grad(explained(y, probability), attention)
    r = torch.eye(attention[0].shape[-1])
    for a, slope in list(zip(attention, slopes))[start:]:
        r = r + (slope * a).clamp(min=0)[0].mean(0) @ r
    return r[0, 1:].detach()


def transition(net, x, start, probability, backward="plain"):
    """Of a net whose images are normalised to 0 in the middle."""
    slopes = 0
    for k in range(STEPS):
        y, attention = kept(lambda: net(x * k / (STEPS - 1)), backward)
        slopes = slopes + torch.autograd.grad(explained(y, probability), attention[-1])[0] / STEPS
    *before, last = [a.detach()[0].mean(0) for a in kept(lambda: net(x))[1]]
    s = last[0]
    for a in before[start:][::-1]:
        s = s @ a + s
    return (s * slopes.clamp(min=0)[0].mean(0)[0])[1:]


def legrad(net, x, start, probability, blocks, head, prefix=1, pool=None, backward="plain"):
    """blocks are the modules, and head is the model behind them, norm included, given a token. A
    pool is the same, given all tokens, which an attention pools."""
    ends, total = [], 0
    hooks = [b.register_forward_hook(lambda _, inputs, out: ends.append(inputs[0].detach())) for b in blocks]
    net(x)
    for h in hooks:
        h.remove()
    for block, tokens in list(zip(blocks, ends))[start:]:
        out, (attention,) = kept(lambda: block(tokens.requires_grad_()), backward)
        if pool:
            y, (attention,) = kept(lambda: pool(out), backward)
        else:
            with patched(backward):
                y = head(out.mean(1))
        slope, = torch.autograd.grad(explained(y, probability), attention)
        total = total + slope.clamp(min=0).mean((0, 1, 2))
    return total[prefix:].detach()


def eclip(net, x, probability, blocks, head, prefix=1, reads=(0,), backward="plain"):
    """reads are the tokens that head, the model behind the blocks, reads of all."""
    block, found = blocks[-1], []
    with block.register_forward_hook(lambda _, inputs, out: found.append(inputs[0].detach())):
        net(x)
    tokens, = found
    heads, norm1, qkv, bias, project, behind = parts(block)
    n, width = tokens.shape[1:]
    q, k, v = (t[0] for t in (norm1(tokens) @ qkv.T + bias).chunk(3, -1))  # [T, C]
    split = [t.reshape(n, heads, -1).transpose(0, 1) for t in (q, k, v)]
    weights = torch.softmax(split[0] @ split[1].transpose(1, 2) / (width // heads) ** 0.5, -1)
    o = (weights @ split[2]).transpose(0, 1).reshape(1, n, width).detach().requires_grad_()
    with patched(backward):
        y = head(behind(tokens + project(o)))
    torch.testing.assert_close(y, net(x))
    g, = torch.autograd.grad(explained(y, probability), o)
    if backward == "attn-lrp":
        g = g / 2  # o is a product of attention and values
    return sum(weighted(q[r], k[prefix:], v[prefix:], g[0, r]) for r in reads) / len(reads)


def weighted(q, k, v, g):
    similar = torch.cosine_similarity(q[None], k)
    similar = (similar - similar.min()) / (similar.max() - similar.min())
    return (similar * (v @ g)).clamp(min=0).detach()


def eclip_pooled(net, x, probability):
    """The attention of timm's pooling head, with a query of its own."""
    pool = net.attn_pool
    tokens = net.forward_features(x)
    q = pool.q(pool.latent)[0, 0]
    k, v = pool.kv(tokens)[0].chunk(2, -1)
    split = [t.reshape(-1, pool.num_heads, pool.head_dim).transpose(0, 1) for t in (q, k, v)]
    weights = torch.softmax(split[0] @ split[1].transpose(1, 2) * pool.head_dim ** -0.5, -1)
    o = (weights @ split[2]).transpose(0, 1).reshape(1, 1, -1).detach().requires_grad_()
    t = pool.proj(o)
    y = net.head(net.fc_norm((t + pool.mlp(pool.norm(t)))[:, 0]))
    torch.testing.assert_close(y, net(x))
    return weighted(q, k, v, torch.autograd.grad(explained(y, probability), o)[0][0, 0])


def parts(block):
    """Heads, first norm, weights and bias of queries, keys and values, projection, and the rest of a block."""
    if hasattr(block, "self_attention"):
        a = block.self_attention
        return a.num_heads, block.ln_1, a.in_proj_weight, a.in_proj_bias, a.out_proj, lambda t: t + block.mlp(block.ln_2(t))
    if hasattr(block, "attn"):
        a = block.attn
        return a.num_heads, block.norm1, a.qkv.weight, a.qkv.bias, a.proj, lambda t: t + block.mlp(block.norm2(t))
    a = block.attention
    return a.heads, block.norm1, a.qkv.weight, a.qkv.bias, a.out, lambda t: t + block.dense(block.norm2(t))


def peer(net, x, start):
    """torch-cam's, for torchvision's nets."""
    blocks = list(net.encoder.layers)[start:]
    with LeGrad(net, blocks) as cam:
        y = net(x)
        joined, = cam.compute_cams(TARGET, y, normalized=False)
    return joined.flatten() * len(blocks)


def quickstart(name):
    net = nets.NETS[name]()
    train.go_on(net, ROOT / f"experiments/quickstart/{name}.onnx")
    return net, 2 * image(64) - 1, net.blocks, lambda t: net.head(net.norm(t))


def tiny():
    net = timm.create_model("vit_tiny_patch16_224")
    shared = next(d for d in (ROOT / "shared", ROOT.parent / "shared") if d.exists())
    train.go_on(net, shared / "data/models/imagenet_vit_tiny_patch16_224.onnx")
    return net, 2 * image(224) - 1, net.blocks, lambda t: net.head(net.norm(t))


def subset():
    known = json.load(open(ROOT / "stages/internal/program/zoo/testdata/subset.vit.json"))
    with mock.patch.object(torch, "get_default_dtype", lambda: torch.float32):
        torch.set_default_dtype(torch.float32)
        net = zoo.rebuilt("subset/vit", known.get("gain", zoo.GAINS[0]))
        torch.set_default_dtype(torch.float64)
    return net, image(32), net.encoder.layers, lambda t: net.heads(net.encoder.ln(t))


NETS = {"reg4": (dict(reg_tokens=4), 5), "distilled": (dict(), 2), "average": (dict(global_pool="avg"), 1),
        "mean": (dict(global_pool="avg", class_token=False, fc_norm=False), 0),
        "pooled": (dict(global_pool="map", class_token=False), 0)}


def made(name):
    """Small nets whose tokens have others before them, or are pooled; exported to testdata/tokens."""
    options, prefix = NETS[name]
    with mock.patch.object(torch, "get_default_dtype", lambda: torch.float32):
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(11 if name == "distilled" else 3)  # of whose maps most aren't 0
        kind = timm.models.deit.VisionTransformerDistilled if name == "distilled" else timm.models.VisionTransformer
        net = kind(img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2, mlp_ratio=2, num_classes=5, **options)
        for p in net.parameters():
            if p.ndim > 1:
                torch.nn.init.normal_(p, std=0.3)
        net.eval()
        path = Path(__file__).parent / f"tokens/{name}.onnx"
        path.parent.mkdir(exist_ok=True)
        torch.onnx.export(net, (torch.zeros(1, 3, 32, 32),), path, dynamo=False, opset_version=17,
                          input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}})
        torch.set_default_dtype(torch.float64)
    return net, image(32), prefix


def maps_of_made(name, probability):
    net, x, prefix = made(name)
    net = net.double()
    head = lambda t: net.head(net.fc_norm(net.norm(t)))  # noqa: E731
    if name == "distilled":
        head = lambda t: (net.head(net.norm(t)) + net.head_dist(net.norm(t))) / 2  # noqa: E731
    pool = (lambda t: net.head(net.fc_norm(net.attn_pool(net.norm(t))))) if name == "pooled" else None
    explained_by = legrad(net, x, 0, probability, net.blocks, head, prefix, pool)
    if name == "pooled":
        return explained_by, eclip_pooled(net, x, probability)
    reads = {"reg4": [0], "distilled": [0, 1]}.get(name, range(prefix, prefix + 16))
    whole = lambda t: net.forward_head(net.norm(t))  # noqa: E731
    return explained_by, eclip(net, x, probability, net.blocks, whole, prefix, reads)


def maps_by_backward():
    net, x, blocks, head = quickstart("vit")
    net, out = net.double().eval(), {}
    for backward in ("plain", "balanced", "attn-lrp"):
        named = "" if backward == "plain" else " " + backward
        for start in (0, 2):
            for output in ("logit", "probability"):
                key, probability = f"{start} {output}{named}", output == "probability"
                out[f"quickstart/vit transition-attention {key}"] = transition(net, x, start, probability, backward)
                if named:
                    out[f"quickstart/vit generic-attention {key}"] = generic(net, x, start, probability, backward)
                    out[f"quickstart/vit legrad {key}"] = legrad(net, x, start, probability, blocks, head, backward=backward)
                if named and start == 0:
                    out[f"quickstart/vit grad-eclip {key}"] = eclip(
                        net, x, probability, blocks, lambda t: head(t[:, 0]), backward=backward)
    return out


def main():
    out = {}
    for name in NETS:
        for output in ("logit", "probability"):
            maps = maps_of_made(name, output == "probability")
            out |= {f"tokens/{name} {method} 0 {output}": m for method, m in zip(("legrad", "grad-eclip"), maps)
                    if m.any()}
    for name, build in {"quickstart/vit": partial(quickstart, "vit"), "quickstart/vit-16": partial(quickstart, "vit-16"),
                        "imagenet_vit_tiny_patch16_224": tiny, "subset/vit": subset}.items():
        net, x, blocks, head = build()
        net = net.double().eval()
        for start in (0, 2):
            for output in ("logit", "probability"):
                key, probability = f"{start} {output}", output == "probability"
                if name.startswith("quickstart"):
                    out[f"{name} generic-attention {key}"] = generic(net, x, start, probability)
                if start == 0 and name != "subset/vit":  # whose map is 0
                    out[f"{name} grad-eclip {key}"] = eclip(net, x, probability, blocks, lambda t: head(t[:, 0]))
                if start < len(blocks):
                    out[f"{name} legrad {key}"] = legrad(net, x, start, probability, blocks, head)
                if name == "subset/vit" and start == 0 and not probability:
                    torch.testing.assert_close(peer(net, x, start), out[f"{name} legrad {key}"])
                print(name, key, flush=True)
    out |= maps_by_backward()
    with open(sys.argv[2], "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps([float(f'{v:.7g}') for v in m.numpy()])}"
                                    for k, m in out.items()) + "\n}\n")


if __name__ == "__main__":
    main()
