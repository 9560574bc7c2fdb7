#!/usr/bin/env python3
"""Writes PyTorch's numbers of models of the Llama family, which tests compare with.

usage: make_llama_fixture.py [--out DIR]

Tiny models with random weights, run forward over two sequences in float64; for those of GRADIENTS
also the gradients of the mean cross-entropy of each token from those before it, and the size of
the terms that each gradient is a sum of. src/model/llama_torch_test.cc and
src/training/llama_torch_test.cc read them. Files are text: "kind name count", then count numbers,
again and again. Needs PyTorch; the test does not. Nothing here is shared with the program under
test.
"""

import argparse
import math
import pathlib

import torch
import torch.nn.functional as F

SEED = 20261201
LAYERS, WIDTH, FEED_FORWARD, VOCAB = 2, 20, 24, 23
SEQUENCES = 2
EPS = 1e-5
BASE = 100.0  # Low, so that every pair of channels turns far within a short context.

# heads, kv heads, channels of a head, of which so many turn, context; and what is special.
MODELS = {
    "llama": dict(heads=4, kv_heads=2, head_dim=6, rotary=6, context=12, pairing="neighbours"),
    "llama_linear": dict(heads=3, kv_heads=3, head_dim=4, rotary=4, context=12,
                         pairing="neighbours", factor=2.5),
    "llama_llama3": dict(heads=4, kv_heads=2, head_dim=8, rotary=8, context=12,
                         pairing="neighbours",
                         llama3=dict(factor=4.0, low=1.0, high=4.0, original=64.0)),
    "llama_window": dict(heads=4, kv_heads=2, head_dim=6, rotary=6, context=24,
                         pairing="neighbours", windows=[5, 0]),
    "qwen2": dict(heads=3, kv_heads=1, head_dim=6, rotary=6, context=12, pairing="halves",
                  bias=True, tied=True),
    "qwen3": dict(heads=4, kv_heads=2, head_dim=8, rotary=6, context=12, pairing="halves",
                  head_norms=True),
}

# Grouped heads and a window; biases, one kv head, a tied head.
GRADIENTS = ("llama_window", "qwen2")


class Trace:
    """Remembers each parameter's uses: the terms that its gradient's chain adds up."""

    def __init__(self):
        self.uses = []

    def use(self, name, output, factor, ids=None):
        """output = parameter x factor (None: 1); of a table, the rows looked up are ids."""
        if output.requires_grad:
            output.retain_grad()
            self.uses.append((name, output, factor, ids))

    def magnitudes(self):
        """Per parameter: sum over rows of (largest |output gradient|) x (largest |factor|)."""
        sums = {}
        for name, output, factor, ids in self.uses:
            rows = output.grad.abs().amax(-1)
            if factor is not None:
                rows = rows * factor.detach().abs().amax(-1)
            if ids is not None:  # Each table row adds up its own uses: the largest such sum.
                rows = torch.bincount(ids, weights=rows).max()
            sums[name] = sums.get(name, 0.0) + rows.sum().item()
        return sums


def tensor_shapes(m):
    """Names as in GGUF; matrices are [outputs, inputs]."""
    q, kv = m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"]
    shapes = {"token_embd.weight": (VOCAB, WIDTH)}
    for i in range(LAYERS):
        layer = {"attn_norm.weight": (WIDTH,), "attn_q.weight": (q, WIDTH),
                 "attn_k.weight": (kv, WIDTH), "attn_v.weight": (kv, WIDTH)}
        if m.get("bias"):
            layer |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        if m.get("head_norms"):
            layer |= {"attn_q_norm.weight": (m["head_dim"],),
                      "attn_k_norm.weight": (m["head_dim"],)}
        layer |= {"attn_output.weight": (WIDTH, q), "ffn_norm.weight": (WIDTH,),
                  "ffn_gate.weight": (FEED_FORWARD, WIDTH), "ffn_up.weight": (FEED_FORWARD, WIDTH),
                  "ffn_down.weight": (WIDTH, FEED_FORWARD)}
        shapes |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    shapes["output_norm.weight"] = (WIDTH,)
    if not m.get("tied"):
        shapes["output.weight"] = (VOCAB, WIDTH)
    return shapes


def random_weights(m):
    """Multiples of 1/64: exact in float32, short in the file."""
    weights = {}
    for name, shape in tensor_shapes(m).items():
        # Small embeddings: the first norm's mean square is near its epsilon, which then shows.
        scale = 0.02 if name == "token_embd.weight" and not m.get("tied") else 0.4
        values = scale * torch.randn(shape, dtype=torch.float64)
        if name.endswith("norm.weight"):
            values = values + 1.0
        weights[name] = torch.round(values * 64) / 64
    return weights


def rms_norm(x, gain):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * gain


def frequencies(m):
    d = m["rotary"]
    result = []
    for i in range(d // 2):
        f = BASE ** (-2 * i / d) / m.get("factor", 1.0)
        if "llama3" in m:  # By wavelength, as the reference code of Llama 3.1 tells it.
            s = m["llama3"]
            wave = 2 * math.pi / f
            if wave > s["original"] / s["low"]:
                f /= s["factor"]
            elif wave > s["original"] / s["high"]:
                smooth = (s["original"] / wave - s["low"]) / (s["high"] - s["low"])
                f = (1 - smooth) * f / s["factor"] + smooth * f
        result.append(f)
    return torch.tensor(result, dtype=torch.float64)


def rotate(m, x):
    """x [heads, length, head_dim]: pairs of channels as complex numbers, turned."""
    n = m["rotary"]
    turning, rest = x[..., :n], x[..., n:]
    if m["pairing"] == "neighbours":
        pairs = torch.complex(turning[..., 0::2], turning[..., 1::2])
    else:
        pairs = torch.complex(turning[..., :n // 2], turning[..., n // 2:])
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequencies(m))
    pairs = pairs * torch.polar(torch.ones_like(angles), angles)
    if m["pairing"] == "neighbours":
        turned = torch.stack((pairs.real, pairs.imag), -1).flatten(-2)
    else:
        turned = torch.cat((pairs.real, pairs.imag), -1)
    return torch.cat((turned, rest), -1)


def visible(length, window):
    """[length, length], True where the query (row) sees the key (column)."""
    t = torch.arange(length)
    seen = t[None, :] <= t[:, None]
    return seen & (t[None, :] > t[:, None] - window) if window else seen


def product(w, name, x, trace):
    bias = w.get(name + ".bias")
    y = F.linear(x, w[name + ".weight"], bias)
    trace.use(name + ".weight", y, x)
    if bias is not None:
        trace.use(name + ".bias", y, None)
    return y


def gained_norm(w, name, x, trace):
    normal = rms_norm(x, 1.0)
    y = normal * w[name + ".weight"]
    trace.use(name + ".weight", y, normal)
    return y


def attention(m, w, blk, x, window, trace):
    length = x.shape[0]

    def heads(name, count):
        y = product(w, blk + name, x, trace)
        return y.view(length, count, m["head_dim"]).transpose(0, 1)

    q, k, v = heads("attn_q", m["heads"]), heads("attn_k", m["kv_heads"]), heads(
        "attn_v", m["kv_heads"])
    if m.get("head_norms"):
        q = rms_norm(q, w[blk + "attn_q_norm.weight"])
        k = rms_norm(k, w[blk + "attn_k_norm.weight"])
    q, k = rotate(m, q), rotate(m, k)
    group = m["heads"] // m["kv_heads"]
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    scores = q @ k.transpose(-1, -2) / math.sqrt(m["head_dim"])
    scores = scores.masked_fill(~visible(length, window), -math.inf)
    attended = (torch.softmax(scores, -1) @ v).transpose(0, 1).reshape(length, -1)
    return product(w, blk + "attn_output", attended, trace)


def forward(m, w, tokens, trace):
    """tokens [length] -> logits [length, VOCAB], and the largest sum of |terms| of a logit."""
    x = w["token_embd.weight"][tokens]
    trace.use("token_embd.weight", x, None, tokens)
    for i in range(LAYERS):
        blk = f"blk.{i}."
        window = m.get("windows", [0] * LAYERS)[i]
        x = x + attention(m, w, blk, gained_norm(w, blk + "attn_norm", x, trace), window, trace)
        y = gained_norm(w, blk + "ffn_norm", x, trace)
        gated = F.silu(product(w, blk + "ffn_gate", y, trace)) * product(
            w, blk + "ffn_up", y, trace)
        x = x + product(w, blk + "ffn_down", gated, trace)
    y = gained_norm(w, "output_norm", x, trace)
    head = "token_embd" if m.get("tied") else "output"
    return (product(w, head, y, trace), F.linear(y.abs(), w[head + ".weight"].abs()).max().item())


def gradient_entries(m, weights, tokens):
    w = {name: value.clone().requires_grad_() for name, value in weights.items()}
    trace = Trace()
    loss = torch.stack([F.cross_entropy(forward(m, w, s, trace)[0][:-1], s[1:])
                        for s in tokens]).mean()
    loss.backward()
    entries = [("loss", "mean", [loss.item()], 13)]
    entries += [("gradient", name, w[name].grad.reshape(-1).tolist(), 10) for name in w]
    return entries + [("magnitude", name, [value], 6) for name, value in trace.magnitudes().items()]


def write(path, entries):
    with open(path, "w", encoding="utf-8") as out:
        for kind, name, values, digits in entries:
            numbers = [f"{v:.{digits}g}" for v in values]
            out.write(f"{kind} {name} {len(numbers)}\n{' '.join(numbers)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "data")
    out = parser.parse_args().out
    torch.manual_seed(SEED)
    for label, m in MODELS.items():
        w = random_weights(m)
        tokens = torch.randint(0, VOCAB, (SEQUENCES, m["context"]))
        rows, magnitudes = zip(*(forward(m, w, sequence, Trace()) for sequence in tokens))
        entries = [("text", "tokens", tokens.reshape(-1).tolist(), 3)]
        entries += [("weight", name, value.reshape(-1).tolist(), 9) for name, value in w.items()]
        entries += [("logits", "all", torch.stack(rows).reshape(-1).tolist(), 13),
                    ("magnitude", "logits", [max(magnitudes)], 6)]
        write(out / f"{label}.forward.txt", entries)
        if label in GRADIENTS:
            write(out / f"{label}.gradients.txt", gradient_entries(m, w, tokens))


if __name__ == "__main__":
    main()
