"""Reference derivatives of nets, in double precision, by PyTorch's autograd.

    python gradients.py ROOT > gradients.json

ROOT is the project's folder, beside which the shared nets lie. A net is read by the
interpreter of ONNX below, which shares nothing with the project. Of each derivative
its norm, its sum and some values are kept, and how far PyTorch's own single
precision is from it.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

IMAGES = 2
SAMPLES = 200


def image(k, shape):
    """Image number k, by integer arithmetic, so that every language makes the same."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    a = ((i * 7919 + k * 104729) % 2003) / 1001.5 - 1
    b = ((i // 7 * 31 + k * 17) % 509) / 254.5 - 1
    return (a * 0.5 + b).astype(np.float32).reshape(shape)


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def ints(t):
    return [int(v) for v in np.asarray(t.detach().cpu() if isinstance(t, torch.Tensor) else t).reshape(-1)]


class Net:
    def __init__(self, path, dtype):
        self.model = onnx.load(path)
        self.dtype = dtype
        self.opset = next(o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx"))
        g = self.model.graph
        self.weights = {t.name: self.tensor(t) for t in g.initializer}
        self.input = next(v for v in g.input if v.name not in self.weights)
        makers = {o: n for n in g.node for o in n.output}
        self.output = g.output[0].name
        name = self.output
        while name in makers and makers[name].op_type in ("Identity", "Softmax", "Cast", "Flatten", "Reshape"):
            n = makers[name]
            name = n.input[0]
            if n.op_type == "Softmax":
                self.output = name
                break

    def tensor(self, t):
        v = torch.from_numpy(numpy_helper.to_array(t).copy())
        return v.to(self.dtype) if v.is_floating_point() else v

    def __call__(self, x):
        v = dict(self.weights)
        v[self.input.name] = x
        for n in self.model.graph.node:
            ins = [v[i] if i else None for i in n.input]
            op = n.domain.rpartition(".")[2] + n.op_type if n.domain else n.op_type
            out = getattr(self, op)(n, attributes(n), *ins)
            out = [out] if len(n.output) == 1 else out
            v.update(zip(n.output, out))
            if self.output in n.output:
                break
        return v[self.output]

    # Operators, each of the versions that the nets use.
    def Constant(self, n, a):
        return self.tensor(a["value"])

    def Identity(self, n, a, x):
        return x

    def Dropout(self, n, a, x, *_):
        return x

    def Cast(self, n, a, x):
        to = onnx.helper.tensor_dtype_to_np_dtype(a["to"])
        return x.to(self.dtype) if np.issubdtype(to, np.floating) else x.to(torch.from_numpy(np.zeros(1, to)).dtype)

    def Add(self, n, a, x, y):
        return x + y

    def Sum(self, n, a, *x):
        return sum(x)

    def Sub(self, n, a, x, y):
        return x - y

    def Mul(self, n, a, x, y):
        return x * y

    def Div(self, n, a, x, y):
        return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")

    def Pow(self, n, a, x, y):
        return x ** y

    def Sqrt(self, n, a, x):
        return x.sqrt()

    def Erf(self, n, a, x):
        return torch.erf(x)

    def Relu(self, n, a, x):
        return F.relu(x)

    def Clip(self, n, a, x, low=None, high=None):
        return x.clamp(a.get("min", low), a.get("max", high))

    def MatMul(self, n, a, x, y):
        return x @ y

    def Gemm(self, n, a, x, w, b=None):
        x = x.T if a.get("transA") else x
        w = w.T if a.get("transB") else w
        y = a.get("alpha", 1.0) * (x @ w)
        return y if b is None else y + a.get("beta", 1.0) * b

    def Conv(self, n, a, x, w, b=None):
        p = a.get("pads", [0, 0, 0, 0])
        x = F.pad(x, (p[1], p[3], p[0], p[2]))
        return F.conv2d(x, w, b, a.get("strides", [1, 1]), 0, a.get("dilations", [1, 1]), a.get("group", 1))

    def MaxPool(self, n, a, x):
        p, k, s = a.get("pads", [0, 0, 0, 0]), a["kernel_shape"], a.get("strides", [1, 1])
        if a.get("ceil_mode"):
            for axis in (0, 1):
                size = x.shape[2 + axis] + p[axis] + p[axis + 2] - k[axis]
                p[axis + 2] += -size % s[axis]
        x = F.pad(x, (p[1], p[3], p[0], p[2]), value=-float("inf"))
        return F.max_pool2d(x, k, s)

    def AveragePool(self, n, a, x):
        assert not any(a.get("pads", [0]))
        return F.avg_pool2d(x, a["kernel_shape"], a.get("strides", [1, 1]))

    def GlobalAveragePool(self, n, a, x):
        return x.mean((2, 3), keepdim=True)

    def BatchNormalization(self, n, a, x, scale, bias, mean, var):
        return F.batch_norm(x, mean, var, scale, bias, False, 0, a.get("epsilon", 1e-5))

    def LayerNormalization(self, n, a, x, scale, bias=None):
        shape = x.shape[a.get("axis", -1):]
        return F.layer_norm(x, shape, scale, bias, a.get("epsilon", 1e-5))

    def Softmax(self, n, a, x):
        if self.opset >= 13:
            return x.softmax(a.get("axis", -1))
        return x.flatten(a.get("axis", 1)).softmax(-1).reshape(x.shape)

    def ReduceMean(self, n, a, x, axes=None):
        return x.mean(a["axes"] if axes is None else ints(axes), keepdim=bool(a.get("keepdims", 1)))

    def ReduceSum(self, n, a, x, axes=None):
        return x.sum(a["axes"] if axes is None else ints(axes), keepdim=bool(a.get("keepdims", 1)))

    def Gelu(self, n, a, x):
        return F.gelu(x, approximate=a.get("approximate", b"none").decode())

    def Mish(self, n, a, x):
        return F.mish(x)

    def Upsample(self, n, a, x):
        return F.interpolate(x, scale_factor=tuple(a["scales"][2:]), mode="nearest")

    def Resize(self, n, a, x, roi, scales):
        assert a["mode"] == b"nearest" and a["axes"] == [2]
        return F.interpolate(x, scale_factor=(float(scales[0]), 1.0), mode="nearest")

    def GroupNormalization(self, n, a, x, scale, bias):
        y = F.group_norm(x, a["num_groups"], eps=a.get("epsilon", 1e-5))
        scale, bias = (v.repeat_interleave(x.shape[1] // len(v))[:, None, None] for v in (scale, bias))
        return y * scale + bias

    def Col2Im(self, n, a, x, image, block):
        (h, w), (top, left, bottom, right) = ints(image), a["pads"]
        return F.fold(x, (h + top + bottom, w + left + right), ints(block), stride=a["strides"])[:, :, top:top + h, left:left + w]

    def Tanh(self, n, a, x):
        return x.tanh()

    def GridSample(self, n, a, x, grid):
        mode, padding = a["mode"].decode(), a.get("padding_mode", b"zeros").decode()
        return F.grid_sample(x, grid, mode, padding, bool(a.get("align_corners", 0)))

    def RotaryEmbedding(self, n, a, x, cos, sin, places):
        apart = x if x.dim() == 4 else x.unflatten(2, (a["num_heads"], -1)).transpose(1, 2)
        turned = a.get("rotary_embedding_dim", apart.shape[-1])
        first = torch.arange(0, turned, 2) if a.get("interleaved") else torch.arange(turned // 2)
        second = first + (1 if a.get("interleaved") else turned // 2)
        # Pairs as complex numbers.
        z = torch.complex(apart[..., first], apart[..., second]) * torch.complex(cos[places], sin[places])[:, None]
        y = apart.clone()
        y[..., first], y[..., second] = z.real, z.imag
        return y if x.dim() == 4 else y.transpose(1, 2).flatten(2)

    def Attention(self, n, a, q, k, v, mask):
        merged = q.dim() == 3
        if merged:
            q, k, v = (x.unflatten(2, (a[h], -1)).transpose(1, 2) for x, h in ((q, "q_num_heads"), (k, "kv_num_heads"), (v, "kv_num_heads")))
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        s = torch.einsum("nhqd,nhkd->nhqk", q, k) * a.get("scale", q.shape[-1] ** -0.5)
        if a.get("softcap"):
            s = a["softcap"] * torch.tanh(s / a["softcap"])
        seen = torch.ones(s.shape, dtype=torch.bool)
        if mask.dtype == torch.bool:
            seen = seen & mask
        else:
            s = s + mask
        if a.get("is_causal"):
            seen = seen.tril()
        e = s.exp() * seen
        y = torch.einsum("nhqk,nhkd->nhqd", e / e.sum(-1, keepdim=True).clamp_min(1e-30), v)
        return y.transpose(1, 2).flatten(2) if merged else y

    def LSTM(self, n, a, x, w, r, b, lengths, h0=None, c0=None, p=None):
        ways, outs, last = {b"forward": [1], b"reverse": [-1], b"bidirectional": [1, -1]}[a.get("direction", b"forward")], [], []
        size = a["hidden_size"]
        for d, way in enumerate(ways):
            h = x.new_zeros(x.shape[1], size) if h0 is None else h0[d]
            c = x.new_zeros(x.shape[1], size) if c0 is None else c0[d]
            pi, po, pf = (x.new_zeros(3 * size) if p is None else p[d]).split(size)
            out = [None] * len(x)
            for t in range(len(x))[::way]:
                i, o, f, g = (F.linear(x[t], w[d], b[d][: 4 * size]) + F.linear(h, r[d], b[d][4 * size:])).split(size, -1)
                i, f = torch.sigmoid(i + pi * c), torch.sigmoid(f + pf * c)
                c = f * c + i * torch.tanh(g)
                h = torch.sigmoid(o + po * c) * torch.tanh(c)
                out[t] = h
            outs.append(torch.stack(out))
            last.append((h, c))
        return torch.stack(outs, 1), torch.stack([h for h, _ in last]), torch.stack([c for _, c in last])

    def activated(self, name, params, x):
        return {
            b"Relu": F.relu, b"LeakyRelu": F.leaky_relu, b"Clip": torch.clamp,
            b"HardSigmoid": lambda x, alpha, beta: (alpha * x + beta).clamp(0, 1),
        }[name](x, *params)

    def microsoftFusedConv(self, n, a, x, w, b=None, z=None):
        y = self.Conv(n, a, x, w, b)
        return self.activated(a["activation"], a.get("activation_params", []), y if z is None else y + z)

    def microsoftFusedGemm(self, n, a, x, w, b):
        return self.activated(a["activation"], [a["activation_alpha"]], self.Gemm(n, a, x, w, b))

    def microsoftFusedMatMul(self, n, a, x, y):
        x = x.mT if a.get("transA") else x
        y = y.mT if a.get("transB") else y
        return a["alpha"] * (x @ y)

    def microsoftGelu(self, n, a, x):
        return F.gelu(x)

    def microsoftBiasGelu(self, n, a, x, b):
        return F.gelu(x + b)

    def microsoftFastGelu(self, n, a, x, b):
        return F.gelu(x + b, approximate="tanh")

    def microsoftQuickGelu(self, n, a, x):
        return x * torch.sigmoid(a.get("alpha", 1.702) * x)

    def microsoftSkipLayerNormalization(self, n, a, x, skip, scale, bias, more):
        x = x + skip + more
        return F.layer_norm(x, x.shape[-1:], scale, bias, a["epsilon"]), None, None, x

    def microsoftSkipSimplifiedLayerNormalization(self, n, a, x, skip, scale, more):
        return F.rms_norm(x + skip + more, x.shape[-1:], scale, a["epsilon"])

    def SimplifiedLayerNormalization(self, n, a, x, scale):
        return F.rms_norm(x, x.shape[-1:], scale, a.get("epsilon", 1e-5))

    def microsoftAttention(self, n, a, x, w, b, mask, past, bias):
        return self.attend(a, *torch.split(x @ w + b, a["qkv_hidden_sizes"], -1), bias)

    def microsoftMultiHeadAttention(self, n, a, q, k, v, b):
        bq, bk, bv = b.chunk(3)
        return self.attend(a, q + bq, k + bk, v + bv, None)

    def attend(self, a, q, k, v, bias):
        q, k, v = (x.unflatten(2, (a["num_heads"], -1)).transpose(1, 2) for x in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, bias, scale=a.get("scale"))
        return y.transpose(1, 2).flatten(2)

    def microsoftMatMulNBits(self, n, a, x, packed, scales, zeros=None, order=None, bias=None):
        rows, long, bits = a["N"], a["K"], a["bits"]
        number = lambda t, count: sum((t.reshape(rows, -1).long() >> (bits * i) & (2**bits - 1))[..., None] * F.one_hot(torch.tensor(i), 8 // bits)
                                      for i in range(8 // bits)).flatten(1)[:, :count]
        blocks = scales.numel() // rows
        zero = number(zeros, blocks) if zeros is not None else torch.full((rows, blocks), 2**(bits - 1))
        each = lambda t: t.reshape(rows, blocks).repeat_interleave(a["block_size"], 1)[:, :long]
        y = x @ ((number(packed, long) - each(zero)) * each(scales)).T
        return y if bias is None else y + bias

    def SplitToSequence(self, n, a, x, sizes=None):
        axis = a.get("axis", 0)
        if sizes is None:
            return list(x.split(1, axis) if a.get("keepdims", 1) else x.unbind(axis))
        return list(x.split(int(sizes) if sizes.dim() == 0 else ints(sizes), axis))

    def SequenceConstruct(self, n, a, *x):
        return list(x)

    def SequenceAt(self, n, a, x, i):
        return x[int(i)]

    def ConcatFromSequence(self, n, a, x):
        return (torch.stack if a.get("new_axis") else torch.cat)(x, a["axis"])

    def Flatten(self, n, a, x):
        axis = a.get("axis", 1)
        return x.reshape(int(np.prod(x.shape[:axis])), -1)

    def Reshape(self, n, a, x, shape):
        return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(ints(shape))])

    def Transpose(self, n, a, x):
        return x.permute(a["perm"])

    def Concat(self, n, a, *x):
        return torch.cat(x, a["axis"])

    def Split(self, n, a, x, sizes=None):
        axis = a.get("axis", 0)
        sizes = ints(sizes) if sizes is not None else a.get("split", -(-x.shape[axis] // len(n.output)))
        return torch.split(x, sizes, axis)

    def Squeeze(self, n, a, x, axes=None):
        axes = a.get("axes") if axes is None else ints(axes)
        for axis in sorted((i % x.dim() for i in axes), reverse=True):
            x = x.squeeze(axis)
        return x

    def Unsqueeze(self, n, a, x, axes=None):
        axes = a.get("axes") if axes is None else ints(axes)
        for axis in sorted(i % (x.dim() + len(axes)) for i in axes):
            x = x.unsqueeze(axis)
        return x

    def Slice(self, n, a, x, starts=None, ends=None, axes=None, steps=None):
        starts = a.get("starts") if starts is None else ints(starts)
        ends = a.get("ends") if ends is None else ints(ends)
        axes = (a.get("axes") if axes is None else ints(axes)) or range(len(starts))
        steps = [1] * len(starts) if steps is None else ints(steps)
        for s, e, axis, step in zip(starts, ends, axes, steps):
            where = torch.arange(x.shape[axis])[slice(s, e) if step > 0 else slice(None)]
            if step < 0:
                where = torch.from_numpy(np.arange(x.shape[axis])[s:(None if e < -x.shape[axis] else e):step].copy())
            elif step > 1:
                where = where[::step]
            x = x.index_select(axis, where)
        return x

    def Gather(self, n, a, x, i):
        axis = a.get("axis", 0) % x.dim()
        i = torch.as_tensor(i)
        i = torch.where(i < 0, i + x.shape[axis], i)
        return x.index_select(axis, i.reshape(-1)).reshape(x.shape[:axis] + i.shape + x.shape[axis + 1:])

    def Pad(self, n, a, x, pads=None, value=None, axes=None):
        p = a.get("pads") if pads is None else ints(pads)
        if axes is not None:
            some, p = p, [0] * (2 * x.dim())
            for i, axis in enumerate(ints(axes)):
                p[axis % x.dim()], p[axis % x.dim() + x.dim()] = some[i], some[len(some) // 2 + i]
        k = len(p) // 2
        flat = [q for axis in reversed(range(k)) for q in (p[axis], p[axis + k])]
        return F.pad(x, flat, value=float(value) if value is not None else a.get("value", 0.0))

    def Shape(self, n, a, x):
        return torch.tensor(list(x.shape)[a.get("start", 0):a.get("end")])

    def ConstantOfShape(self, n, a, shape):
        value = self.tensor(a["value"]) if "value" in a else torch.zeros(1, dtype=self.dtype)
        return torch.full(ints(shape), value.item(), dtype=value.dtype)

    def Equal(self, n, a, x, y):
        return x == y

    def Where(self, n, a, c, x, y):
        return torch.where(c, x, y)

    def Expand(self, n, a, x, shape):
        return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(ints(shape))))


def derivative(path, dtype):
    """The derivatives [C,H,W] of each image's class, in double precision."""
    net = Net(path, dtype)
    dims = [d.dim_value for d in net.input.type.tensor_type.shape.dim]
    last = dims[3] in (1, 3) and dims[1] not in (1, 3)
    c, h, w = (dims[3], dims[1], dims[2]) if last else dims[1:]
    out = []
    for k in range(IMAGES):
        x = torch.from_numpy(image(k, (1, c, h or 32, w or 32))).to(dtype).requires_grad_()
        y = net(x.permute(0, 2, 3, 1) if last else x).reshape(-1)
        y[k % len(y)].backward()
        out.append(x.grad[0].double().numpy())
    return out


def main(root):
    shared = root.parent / "shared"
    folders = [root / "experiments/quickstart", root / "stages/internal/program/testdata/nets", shared / "golden/models", shared / "data/models"]
    result = []
    for folder in folders:
        for path in sorted(folder.glob("*.onnx")):
            if "-e" in path.stem:
                continue  # checkpoints of a net that is there
            print(path.stem, file=sys.stderr)
            exact, single = derivative(path, torch.float64), derivative(path, torch.float32)
            images = []
            for e, s in zip(exact, single):
                flat = e.reshape(-1)
                step = max(1, len(flat) // SAMPLES)
                norm = float(np.linalg.norm(flat))
                images.append({
                    "norm": norm, "sum": float(flat.sum()), "step": step,
                    "values": [float("%.9g" % v) for v in flat[::step][:SAMPLES]],
                    "single": float("%.2g" % (np.linalg.norm(s.reshape(-1) - flat) / norm)),
                })
            result.append({"net": path.stem, "images": images})
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in result)
    print("[\n" + lines + "\n]")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]).resolve())
