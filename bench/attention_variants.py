#!/usr/bin/env python3
"""Trains small models that differ in how they share keys and values, with equal parameters and
steps, and prints held-out loss beside cache bytes as a table in Markdown.

usage: attention_variants.py --program KVASIR --text FILE --val FILE [--steps N]

What a variant saves in keys and values goes into its MLP, so that all have about the same number of
parameters. The results are bits: they do not depend on the machine.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

LAYERS, HEADS, DIM, CONTEXT = 3, 6, 96, 128
HEAD_DIM = DIM // HEADS
FFN = 256  # Of multi-head attention.
# Name, heads of keys and values, --window.
VARIANTS = (("MHA", 6, ""), ("GQA, 3 heads", 3, ""), ("GQA, 2 heads", 2, ""), ("MQA", 1, ""),
            ("MHA, window 32", 6, "32"), ("MHA, windows 32 in two of three layers", 6, "32,wwf"))


def ffn(kv_heads):
    """Its width: three matrices of dim a channel take what two of kv_heads leave."""
    return FFN + 2 * (HEADS - kv_heads) * HEAD_DIM // 3


def cached_positions(window):
    """Of a full context, the mean over the layers."""
    if not window:
        return CONTEXT
    width, _, pattern = window.partition(",")
    kinds = [pattern[i % len(pattern)] if pattern else "w" for i in range(LAYERS)]
    return sum(int(width) if kind == "w" else CONTEXT for kind in kinds) / LAYERS


def train(flags, kv_heads, window, folder):
    """The JSON that the program prints."""
    command = [flags.program, "train", flags.text, "--val", flags.val, "-o",
               str(folder / "model.gguf"), "--tokenizer", "char", "--arch", "llama", "--tied",
               "--no-report", "--layers", LAYERS, "--heads", HEADS, "--dim", DIM, "--ffn",
               ffn(kv_heads), "--kv-heads", kv_heads, "--context", CONTEXT, "--batch", 16,
               "--steps", flags.steps, "--eval-every", flags.steps, "--lr", "0.003", "--json"]
    command += ["--window", window] if window else []
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--program", "--text", "--val"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int, default=600)
    flags = parser.parse_args()
    print("| keys and values | parameters | cache bytes a token | of a full context | "
          "held-out loss |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, kv_heads, window in VARIANTS:
            out = train(flags, kv_heads, window, pathlib.Path(folder))
            token = 2 * 4 * LAYERS * kv_heads * HEAD_DIM  # K and V in f32.
            print(f"| {name} | {out['parameters']:,} | {token:,} | "
                  f"{token * cached_positions(window) / 1024:.0f} KiB | "
                  f"{out['held_out_nll']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
