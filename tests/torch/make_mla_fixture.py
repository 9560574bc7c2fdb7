#!/usr/bin/env python3
"""Writes the PyTorch numbers that src/model/deepseek_torch_test.cc compares with.

usage: make_mla_fixture.py [--out DIR]

Tiny dense models with multi-head latent attention and random weights, run forward over two
sequences in float64. The plain form: every head's keys and values are expanded from the latents,
and attention is softmax(q k^T) v over them. The program under test never expands them; nothing here
is shared with it. Files are text: "kind name count", then count numbers, again and again. Needs
PyTorch; the test does not.
"""

import argparse
import math
import pathlib

import torch
import torch.nn.functional as F

from make_fixture import Writer

SEED = 20261130
LAYERS, HEADS, WIDTH, FEED_FORWARD, LENGTH, VOCAB = 2, 3, 20, 24, 12, 23
LATENT, NOPE, ROPE, VALUE = 10, 6, 4, 5
SEQUENCES = 2
EPS = 1e-5
ROPE_BASE = 100.0


def tensor_shapes(query_rank):
    """Names as in GGUF, in the order of the program's own list; matrices are [outputs, inputs]."""
    shapes = {"token_embd.weight": (VOCAB, WIDTH)}
    for i in range(LAYERS):
        blk = f"blk.{i}."
        shapes[blk + "attn_norm.weight"] = (WIDTH,)
        if query_rank:
            shapes[blk + "attn_q_a.weight"] = (query_rank, WIDTH)
            shapes[blk + "attn_q_a_norm.weight"] = (query_rank,)
            shapes[blk + "attn_q_b.weight"] = (HEADS * (NOPE + ROPE), query_rank)
        else:
            shapes[blk + "attn_q.weight"] = (HEADS * (NOPE + ROPE), WIDTH)
        shapes[blk + "attn_kv_a_mqa.weight"] = (LATENT + ROPE, WIDTH)
        shapes[blk + "attn_kv_a_norm.weight"] = (LATENT,)
        shapes[blk + "attn_kv_b.weight"] = (HEADS * (NOPE + VALUE), LATENT)
        shapes[blk + "attn_output.weight"] = (WIDTH, HEADS * VALUE)
        shapes[blk + "ffn_norm.weight"] = (WIDTH,)
        shapes[blk + "ffn_gate.weight"] = (FEED_FORWARD, WIDTH)
        shapes[blk + "ffn_up.weight"] = (FEED_FORWARD, WIDTH)
        shapes[blk + "ffn_down.weight"] = (WIDTH, FEED_FORWARD)
    shapes["output_norm.weight"] = (WIDTH,)
    shapes["output.weight"] = (VOCAB, WIDTH)
    return shapes


def random_weights(query_rank):
    """Numbers that are exact in float32, so that both sides start from the same."""
    weights = {}
    for name, shape in tensor_shapes(query_rank).items():
        # Small embeddings: the first norm's mean square is near its epsilon, which then shows.
        scale = 0.01 if "embd" in name else 0.4
        values = scale * torch.randn(shape, dtype=torch.float64)
        if name.endswith("norm.weight"):
            values = values + 1.0
        weights[name] = values.float().double()
    return weights


def norm(x, gain):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * gain


def rotate(x, factor):
    """Neighbouring channels as one complex number, turned by its position: [..., length, ROPE]."""
    position = torch.arange(x.shape[-2], dtype=torch.float64) / factor
    frequency = ROPE_BASE ** (-torch.arange(0, ROPE, 2, dtype=torch.float64) / ROPE)
    turn = torch.polar(torch.ones(1, dtype=torch.float64), torch.outer(position, frequency))
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], ROPE // 2, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


def attention(w, blk, x, query_rank, factor):
    batch, length, _ = x.shape
    if query_rank:
        down = F.linear(x, w[blk + "attn_q_a.weight"])
        q = F.linear(norm(down, w[blk + "attn_q_a_norm.weight"]), w[blk + "attn_q_b.weight"])
    else:
        q = F.linear(x, w[blk + "attn_q.weight"])
    q = q.view(batch, length, HEADS, NOPE + ROPE).transpose(1, 2)
    q = torch.cat([q[..., :NOPE], rotate(q[..., NOPE:], factor)], -1)
    latent, shared = F.linear(x, w[blk + "attn_kv_a_mqa.weight"]).split([LATENT, ROPE], -1)
    latent = norm(latent, w[blk + "attn_kv_a_norm.weight"])
    expanded = F.linear(latent, w[blk + "attn_kv_b.weight"])
    expanded = expanded.view(batch, length, HEADS, NOPE + VALUE).transpose(1, 2)
    shared = rotate(shared, factor).unsqueeze(1).expand(batch, HEADS, length, ROPE)
    k = torch.cat([expanded[..., :NOPE], shared], -1)
    v = expanded[..., NOPE:]
    mask = torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(NOPE + ROPE) + mask, -1)
    attended = (weights @ v).transpose(1, 2).reshape(batch, length, HEADS * VALUE)
    return F.linear(attended, w[blk + "attn_output.weight"])


def forward(w, tokens, query_rank, factor):
    """[sequences, length] -> logits [sequences, length, vocab]."""
    x = w["token_embd.weight"][tokens]
    for i in range(LAYERS):
        blk = f"blk.{i}."
        x = x + attention(w, blk, norm(x, w[blk + "attn_norm.weight"]), query_rank, factor)
        middle = norm(x, w[blk + "ffn_norm.weight"])
        gate = F.silu(F.linear(middle, w[blk + "ffn_gate.weight"]))
        up = F.linear(middle, w[blk + "ffn_up.weight"])
        x = x + F.linear(gate * up, w[blk + "ffn_down.weight"])
    x = norm(x, w["output_norm.weight"])
    terms = (x.abs() @ w["output.weight"].abs().T).max().item()  # largest sum of |terms|
    return F.linear(x, w["output.weight"]), terms


def write_model(out, label, query_rank, factor):
    weights = random_weights(query_rank)
    tokens = torch.randint(0, VOCAB, (SEQUENCES, LENGTH))
    logits, terms = forward(weights, tokens, query_rank, factor)
    file = Writer(out / f"{label}.forward.txt")
    file.add("text", "tokens", tokens)
    for name, values in weights.items():
        file.add("weight", name, values, digits=9)  # 9 digits give a float32 back
    file.add("logits", "all", logits)
    file.add("magnitude", "logits", terms)


def main():
    parser = argparse.ArgumentParser(description="writes the fixtures of latent attention")
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    write_model(out, "mla", query_rank=0, factor=1.0)
    write_model(out, "mla_query_rank", query_rank=8, factor=2.0)


if __name__ == "__main__":
    main()
