"""The relevance of LRP-0, without LRP: input times the gradient of a net in which what
the rules count as constant is detached.

  - Gates: results of softmax, sigmoid and hardsigmoid, and of products of two open values
    the one that is repeated. Where neither is, each gets half.
  - The statistics of normalisations, and divisors.
  - What activations do to a value, powers and roots among them: y = x·(y/x), with the
    quotient detached.

A net's own code runs, and every function of PyTorch that it calls is seen here, so that
nothing depends on how an exporter writes it.
"""
from contextlib import ExitStack
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

GATES = {"sigmoid", "hardsigmoid", "softmax", "_softmax"}
ACTIVATIONS = {"relu", "relu6", "gelu", "silu", "hardswish", "mish", "elu", "celu", "selu", "tanh", "softplus", "softsign", "leaky_relu", "prelu",
               "hardtanh", "clamp", "clamp_min", "clamp_max", "clip", "log_sigmoid", "hardshrink", "softshrink", "threshold"}
POWERS = {"pow", "__pow__", "square", "sqrt"}
STATISTICS = {"var", "std", "norm", "linalg_vector_norm", "linalg_norm", "rsqrt", "reciprocal"}
PRODUCTS = {"mul", "multiply", "__mul__", "__rmul__", "__imul__", "matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm"}
QUOTIENTS = {"div", "true_divide", "divide", "__truediv__", "__div__", "__itruediv__"}


def open_(v):
    return isinstance(v, torch.Tensor) and v.requires_grad


class Detached(TorchFunctionMode):
    def __init__(self, values=()):
        """values: what gates are made of elsewhere, and this net's values pass."""
        super().__init__()
        self.gates, self.activations = GATES - set(values), ACTIVATIONS | POWERS | set(values)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        plain = name if name.startswith("__") else name.rstrip("_")
        if plain in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            raise NotImplementedError("gates inside " + plain)
        if plain in self.gates:
            return func(*args, **kwargs).detach()
        if plain in ("pow", "__pow__") and args[1] < 0:
            return func(*args, **kwargs).detach()
        if plain in self.activations and open_(args[0]):
            x = args[0]
            y = func(x.detach().clone(), *args[1:], **kwargs)
            return x * torch.where(x == 0, 0, y / x).detach()
        if plain in STATISTICS:
            return func(*args, **kwargs).detach()
        if plain in ("var_mean", "std_mean"):
            spread, mean = func(*args, **kwargs)
            return spread.detach(), mean
        if plain in QUOTIENTS and len(args) > 1 and open_(args[1]):
            return args[0] / args[1].detach()
        if plain in PRODUCTS:
            return self.product(func, plain, args, kwargs)
        if plain == "einsum":
            return self.halved(func(*args, **kwargs), sum(map(open_, args[1] if isinstance(args[1], (list, tuple)) else args[1:])))
        if plain == "scaled_dot_product_attention":
            return self.attention(*args, **kwargs)
        if plain == "batch_norm" and open_(args[0]):
            return self.batch_norm(*args, **kwargs)
        if plain == "layer_norm":
            return self.layer_norm(*args, **kwargs)
        if plain == "group_norm":
            return self.group_norm(*args, **kwargs)
        if plain == "instance_norm":
            return self.group_norm(args[0], args[0].shape[1], args[1], args[2], args[7])
        if plain == "rms_norm":
            x, shape = args[:2]
            weight, eps = (list(args[2:]) + [kwargs.get("weight"), kwargs.get("eps")])[:2]
            axes = tuple(range(-len(shape), 0))
            y = x * (x.square().mean(axes, keepdim=True) + (eps or torch.finfo(x.dtype).eps)).rsqrt().detach()
            return y if weight is None else y * weight
        return func(*args, **kwargs)

    @staticmethod
    def halved(y, opened):
        return y * 0.5 + (y * 0.5).detach() if opened > 1 else y

    def product(self, func, name, args, kwargs):
        where = 1 if name == "baddbmm" else 0
        x, y = args[where:where + 2]
        if not (open_(x) and open_(y)):
            return func(*args, **kwargs)
        if name == "baddbmm":
            return kwargs.get("beta", 1) * args[0] + kwargs.get("alpha", 1) * self.halved(x @ y, 2)
        if "mat" not in name and name != "bmm":
            whole = torch.broadcast_shapes(x.shape, y.shape).numel()
            if x.numel() < whole == y.numel():
                return x.detach() * y
            if y.numel() < whole == x.numel():
                return x * y.detach()
            return self.halved(x * y, 2)
        return self.halved(func(*args, **kwargs), 2)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        assert not is_causal and not enable_gqa
        a = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            a = a.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else a + attn_mask
        return a.softmax(-1).detach() @ v

    def batch_norm(self, x, weight, bias, mean, var, training, momentum, eps, cudnn_enabled=None):
        """PyTorch's own derivative is wrong on CPU where what flows back into it is a
        transposed view."""
        assert not training, "images depend on each other"
        per = (1, -1) + (1,) * (x.dim() - 2)
        factor = (var + eps).rsqrt() if weight is None else weight * (var + eps).rsqrt()
        offset = -mean * factor if bias is None else bias - mean * factor
        return x * factor.reshape(per) + offset.reshape(per)

    def layer_norm(self, x, shape, weight=None, bias=None, eps=1e-5, *_):
        axes = tuple(range(-len(shape), 0))
        y = (x - x.mean(axes, keepdim=True)) / (x.var(axes, keepdim=True, unbiased=False) + eps).sqrt().detach()
        y = y if weight is None else y * weight
        return y if bias is None else y + bias

    def group_norm(self, x, groups, weight=None, bias=None, eps=1e-5, *_):
        g = x.reshape(x.shape[0], groups, -1)
        y = ((g - g.mean(-1, keepdim=True)) / (g.var(-1, keepdim=True, unbiased=False) + eps).sqrt().detach()).reshape(x.shape)
        per = (1, -1) + (1,) * (x.dim() - 2)
        y = y if weight is None else y * weight.reshape(per)
        return y if bias is None else y + bias.reshape(per)


def relevance(net, image, target, answer, values=()):
    """The target's logit by answer(net, image), and input times its gradient. Functions of
    torch.nn.functional are followed down to those that they are made of; values are those
    of Detached."""
    x = image.clone().requires_grad_()
    with ExitStack() as stack:
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
            stack.enter_context(mock.patch.object(torch.nn.functional, name, lambda *a: False))
        stack.enter_context(Detached(values))
        y = answer(net, x)
    y[0, target].backward()
    return float(y[0, target].detach()), (x.grad * image)[0].double().numpy()
