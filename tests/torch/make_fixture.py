#!/usr/bin/env python3
"""Writes the PyTorch numbers that src/training/torch_fixture_test.cc compares with.

usage: make_fixture.py [--out DIR]

A tiny GPT-2 with random weights, head untied and tied, run forward and backward over three
sequences in float64; then one clipped AdamW step; then three AdamW steps on plain numbers. Files
are text: "kind name count", then count numbers, again and again. Needs PyTorch; the test does not.
Nothing here is shared with the program under test: layer_norm, gelu, softmax, cross_entropy,
backward and AdamW are PyTorch's.
"""

import argparse
import math
import pathlib

import torch
import torch.nn.functional as F

SEED = 20261130
LAYERS, HEADS, WIDTH, FEED_FORWARD, CONTEXT, VOCAB = 2, 2, 12, 20, 10, 23
SEQUENCES = 3
EPS = 1e-5
# A decided step: every rule of the update is visible in it.
RATE, BETAS, ADAM_EPS, DECAY, CLIP = 1e-2, (0.9, 0.95), 1e-8, 0.1, 0.25


def tensor_shapes(tied):
    """Names as in GGUF, in the order of the program's own list; matrices are [outputs, inputs]."""
    shapes = {"token_embd.weight": (VOCAB, WIDTH), "position_embd.weight": (CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, shape in {
                "attn_norm.weight": (WIDTH,), "attn_norm.bias": (WIDTH,),
                "attn_qkv.weight": (3 * WIDTH, WIDTH), "attn_qkv.bias": (3 * WIDTH,),
                "attn_output.weight": (WIDTH, WIDTH), "attn_output.bias": (WIDTH,),
                "ffn_norm.weight": (WIDTH,), "ffn_norm.bias": (WIDTH,),
                "ffn_up.weight": (FEED_FORWARD, WIDTH), "ffn_up.bias": (FEED_FORWARD,),
                "ffn_down.weight": (WIDTH, FEED_FORWARD), "ffn_down.bias": (WIDTH,)}.items():
            shapes[f"blk.{i}.{name}"] = shape
    shapes["output_norm.weight"] = shapes["output_norm.bias"] = (WIDTH,)
    if not tied:
        shapes["output.weight"] = (VOCAB, WIDTH)
    return shapes


def random_weights(tied):
    """Numbers that are exact in float32, so that both sides start from the same."""
    weights = {}
    for name, shape in tensor_shapes(tied).items():
        # Small embeddings: the first norm's variance is near its epsilon, which then shows.
        scale = 0.05 if "embd" in name else 0.3
        values = scale * torch.randn(shape, dtype=torch.float64)
        if name.endswith("norm.weight"):
            values = values + 1.0
        weights[name] = values.float().double().requires_grad_()
    return weights


class Trace:
    """Remembers each parameter's uses: the terms that its gradient's chain adds up."""

    def __init__(self):
        self.uses = []

    def use(self, name, output, factor, ids=None):
        """output = parameter x factor (None: 1); of a table, the rows looked up are ids."""
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
                rows = torch.bincount(ids.reshape(-1), weights=rows.reshape(-1)).max()
            sums[name] = sums.get(name, 0.0) + rows.sum().item()
        return sums


def linear(w, name, x, trace):
    y = F.linear(x, w[name + ".weight"], w[name + ".bias"])
    trace.use(name + ".weight", y, x)
    trace.use(name + ".bias", y, None)
    return y


def norm(w, name, x, trace):
    normal = F.layer_norm(x, (WIDTH,), eps=EPS)
    y = normal * w[name + ".weight"] + w[name + ".bias"]
    trace.use(name + ".weight", y, normal)
    trace.use(name + ".bias", y, None)
    return y


def forward(w, tokens, trace):
    """[sequences, length] -> logits [sequences, length, vocab]."""
    batch, length = tokens.shape
    token = w["token_embd.weight"][tokens]
    positions = torch.arange(length).expand(batch, length)
    x = token + w["position_embd.weight"][positions]
    trace.use("token_embd.weight", x, None, tokens)
    trace.use("position_embd.weight", x, None, positions)
    mask = torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
    for i in range(LAYERS):
        blk = f"blk.{i}."
        q, k, v = linear(w, blk + "attn_qkv", norm(w, blk + "attn_norm", x, trace), trace).split(
            WIDTH, dim=-1)

        def heads(t):  # [batch, length, width] -> [batch, heads, length, head_dim]
            return t.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        scores = heads(q) @ heads(k).transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        attended = torch.softmax(scores, -1) @ heads(v)
        attended = attended.transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + linear(w, blk + "attn_output", attended, trace)
        up = linear(w, blk + "ffn_up", norm(w, blk + "ffn_norm", x, trace), trace)
        x = x + linear(w, blk + "ffn_down", F.gelu(up, approximate="tanh"), trace)
    x = norm(w, "output_norm", x, trace)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    logits = F.linear(x, w[head])
    trace.use(head, logits, x)
    terms = (x.abs() @ w[head].abs().T).max().item()  # largest sum of a logit's |terms|
    return logits, terms


class Writer:
    def __init__(self, path):
        self.file = open(path, "w", encoding="ascii")

    def add(self, kind, name, values, digits=13):
        numbers = torch.as_tensor(values, dtype=torch.float64).reshape(-1).tolist()
        self.file.write(f"{kind} {name} {len(numbers)}\n")
        for i in range(0, len(numbers), 8):
            self.file.write(" ".join(f"{x:.{digits}g}" for x in numbers[i:i + 8]) + "\n")


def write_model(out, tied):
    weights = random_weights(tied)
    text = torch.randint(0, VOCAB, (SEQUENCES * CONTEXT + 1,))
    inputs = text[:-1].view(SEQUENCES, CONTEXT)
    targets = text[1:].view(SEQUENCES, CONTEXT)
    trace = Trace()
    logits, terms = forward(weights, inputs, trace)
    loss = F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))
    loss.backward()
    label = "tied" if tied else "untied"
    file = Writer(out / f"{label}.forward.txt")
    file.add("text", "tokens", text)
    for name, values in weights.items():
        file.add("weight", name, values.detach(), digits=9)  # 9 digits give a float32 back
    file.add("logits", "all", logits.detach())
    file.add("magnitude", "logits", terms)
    file.add("loss", "mean", loss.item(), digits=17)
    file = Writer(out / f"{label}.gradients.txt")
    magnitudes = trace.magnitudes()
    for name, values in weights.items():
        file.add("gradient", name, values.grad)
        file.add("magnitude", name, magnitudes[name])
    total = torch.nn.utils.clip_grad_norm_(weights.values(), CLIP)
    file.add("norm", "all", total, digits=17)
    optimizer = torch.optim.AdamW(
        [{"params": [v for v in weights.values() if v.dim() == 2], "weight_decay": DECAY},
         {"params": [v for v in weights.values() if v.dim() == 1], "weight_decay": 0.0}],
        lr=RATE, betas=BETAS, eps=ADAM_EPS)
    optimizer.step()
    file = Writer(out / f"{label}.step.txt")
    for name, values in weights.items():
        file.add("stepped", name, values.detach())


def write_adamw(out):
    """Three steps of 37 numbers whose gradients reach from far below the epsilon to 10."""
    count = 37
    parameter = torch.randn(count, dtype=torch.float64).float().double().requires_grad_()
    scales = 10.0 ** torch.linspace(-10, 1, count, dtype=torch.float64)
    optimizer = torch.optim.AdamW([parameter], lr=RATE, betas=BETAS, eps=ADAM_EPS,
                                  weight_decay=DECAY)
    file = Writer(out / "adamw.txt")
    file.add("start", "parameter", parameter.detach(), digits=9)
    for step in range(1, 4):
        parameter.grad = (scales * torch.randn(count, dtype=torch.float64)).float().double()
        optimizer.step()
        state = optimizer.state[parameter]
        file.add(f"step{step}", "gradient", parameter.grad, digits=9)
        file.add(f"step{step}", "parameter", parameter.detach())
        file.add(f"step{step}", "first_moment", state["exp_avg"])
        file.add(f"step{step}", "second_moment", state["exp_avg_sq"])


def main():
    parser = argparse.ArgumentParser(description="writes the PyTorch fixtures")
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    write_model(out, tied=False)
    write_model(out, tied=True)
    write_adamw(out)


if __name__ == "__main__":
    main()
