#!/usr/bin/env python3
"""A small character GPT in PyTorch, as a learner writes one: what Kvasir's speed is set against.

Reads lines from stdin and prints for each the seconds it took. "cached N" and "plain N": it
generates N tokens from one, with its KV cache or recomputing everything at each step. "train N": N
steps of training on 32 random texts of the whole context, with AdamW. One thread.
"""

import argparse
import math
import sys
import time

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, rows, past):
        """rows: [new, width]; past: None or (K, V), each [heads, earlier, width / heads]."""
        new, width = rows.shape
        q, k, v = self.to_qkv(rows).reshape(new, 3, self.heads, -1).permute(1, 2, 0, 3)
        if past is not None:
            k = torch.cat((past[0], k), dim=1)
            v = torch.cat((past[1], v), dim=1)
        scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(width // self.heads)
        if new > 1:
            later = torch.ones(new, k.shape[1], dtype=torch.bool).triu(k.shape[1] - new + 1)
            scores = scores.masked_fill(later, -math.inf)
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out(mixed.permute(1, 0, 2).reshape(new, width)), (k, v)


    def many(self, rows):
        """rows: [texts, length, width], nothing earlier."""
        count, length, width = rows.shape
        q, k, v = self.to_qkv(rows).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(width // self.heads)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = torch.matmul(torch.softmax(scores.masked_fill(later, -math.inf), dim=-1), v)
        return self.out(mixed.transpose(1, 2).reshape(count, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width),
                                 nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, rows, past):
        mixed, present = self.attention(self.attention_norm(rows), past)
        rows = rows + mixed
        return rows + self.mlp(rows), present

    def many(self, rows):
        rows = rows + self.attention.many(self.attention_norm(rows))
        return rows + self.mlp(rows)


class CharacterGpt(nn.Module):
    def __init__(self, flags):
        super().__init__()
        self.token = nn.Embedding(flags.vocab, flags.dim)
        self.position = nn.Embedding(flags.context, flags.dim)
        self.layers = nn.ModuleList(Layer(flags.dim, flags.heads) for _ in range(flags.layers))
        self.norm = nn.LayerNorm(flags.dim)
        self.head = nn.Linear(flags.dim, flags.vocab, bias=False)

    def forward(self, tokens, pasts=None):
        """Logits of the last token, and each layer's (K, V)."""
        start = 0 if pasts is None else pasts[0][0].shape[1]
        rows = self.token(tokens) + self.position(torch.arange(start, start + len(tokens)))
        presents = []
        for i, layer in enumerate(self.layers):
            rows, present = layer(rows, None if pasts is None else pasts[i])
            presents.append(present)
        return self.head(self.norm(rows[-1])), presents

    def scores(self, texts):
        """Logits of every position of several texts of one length: [texts, length, vocabulary]."""
        count, length = texts.shape
        rows = self.token(texts) + self.position(torch.arange(length))
        for layer in self.layers:
            rows = layer.many(rows)
        return self.head(self.norm(rows)).view(count, length, -1)

    def generate(self, count, cached):
        """The generated tokens, drawn at temperature 1, and the logits of the last step."""
        tokens, pasts = torch.zeros(1, dtype=torch.long), None
        for _ in range(count):
            if cached:
                logits, pasts = self(tokens if pasts is None else tokens[-1:], pasts)
            else:
                logits, _ = self(tokens)
            drawn = torch.multinomial(torch.softmax(logits, dim=-1), 1)
            tokens = torch.cat((tokens, drawn))
        return tokens[1:], logits


class Training:
    """Steps of AdamW on random texts."""

    def __init__(self, model, flags):
        self.model, self.flags = model, flags
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run(self, steps, texts=32):
        self.model.train()
        for _ in range(steps):
            tokens = torch.randint(self.flags.vocab, (texts, self.flags.context + 1))
            scores = self.model.scores(tokens[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.model.eval()


def check(model, count):
    """All ways must mean the same before any is timed."""
    torch.manual_seed(1)
    expected, with_cache = model.generate(count, cached=True)
    torch.manual_seed(1)
    tokens, without = model.generate(count, cached=False)
    if not (torch.equal(tokens, expected) and torch.allclose(with_cache, without, atol=1e-4)):
        sys.exit("torch_peer: with its cache the program computes something else: not timed")
    texts = torch.cat((torch.zeros(1, dtype=torch.long), tokens[:-1])).repeat(2, 1)
    if not torch.allclose(model.scores(texts)[1, -1], without, atol=1e-4):
        sys.exit("torch_peer: several texts at once compute something else: not timed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("layers", 4), ("heads", 4), ("dim", 128), ("vocab", 6289),
                          ("context", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = CharacterGpt(flags).eval()
    with torch.inference_mode():
        check(model, min(24, flags.context))
    print(f"ready {torch.__version__}", flush=True)
    training = Training(model, flags)
    for line in sys.stdin:
        kind, count = line.split()
        begin = time.perf_counter()
        if kind == "train":
            training.run(int(count))
        else:
            with torch.inference_mode():
                model.generate(int(count), cached=kind == "cached")
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
