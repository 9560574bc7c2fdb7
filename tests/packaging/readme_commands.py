#!/usr/bin/env python3
"""Runs the commands of README.md as they are written there.

usage: readme_commands.py --program PATH/TO/kvasir [--slow] README.md

Every fenced block that starts with ```sh (all its lines) or ```console (its lines after "$ ") is
run with bash in a copy of the tree's top level made of links, where build/release/kvasir is the
program given; a non-zero exit status is a failure. Words after the language: "norun" = never run,
"slow" = only with --slow, "fails" = the exit status must not be 0. Lines that install, clone,
change folder or call ./dev are left out: they are tested by starting from a clean clone. Blocks run
in order in one folder, so a later one may read what an earlier one wrote.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LEFT_OUT = re.compile(r"^\s*(?:\./dev|git clone|cd|sudo|apt(?:-get)?|npm)\b")
FENCE = re.compile(r"^(\s*)(```+)\s*(.*?)\s*$")
FLAGS = {"norun", "slow", "fails"}
BLOCK_SECONDS = 120
SLOW_BLOCK_SECONDS = 800


@dataclasses.dataclass
class Block:
    line: int
    flags: set
    commands: list


def console_commands(lines):
    """The commands of a transcript: after "$ ", with "> " or backslash continuations."""
    commands = []
    continues = False
    for line in lines:
        if line.startswith("$ "):
            commands.append(line[2:])
        elif continues or (commands and line.startswith("> ")):
            commands[-1] += "\n" + line.removeprefix("> ")
        else:
            continue
        continues = commands[-1].endswith("\\")
    return commands


def read_blocks(text):
    blocks = []
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence is None:
            if match:
                fence, start, words, lines = match[2], number, match[3].split(), []
            continue
        if not (match and match[2].startswith(fence) and not match[3]):
            lines.append(line)
            continue
        fence = None
        if not words or words[0] not in ("sh", "console"):
            continue
        unknown = set(words[1:]) - FLAGS
        if unknown:
            raise ValueError(f"line {start}: unknown word {', '.join(sorted(unknown))} after the "
                             f"language; allowed: {', '.join(sorted(FLAGS))}")
        commands = lines if words[0] == "sh" else console_commands(lines)
        kept = [c for c in commands if not LEFT_OUT.match(c)]
        if any(c.strip() and not c.lstrip().startswith("#") for c in kept):
            blocks.append(Block(start, set(words[1:]), kept))
    if fence is not None:
        raise ValueError(f"line {start}: the block is never closed")
    return blocks


def prepare(folder, root, program):
    """Links to everything a reader has after ./dev build; what commands write stays in folder."""
    for path in root.iterdir():
        if path.name not in ("build", ".git"):
            (folder / path.name).symlink_to(path)
    (folder / "build" / "release").mkdir(parents=True)
    (folder / "build" / "release" / "kvasir").symlink_to(program)


def run_block(block, folder):
    """None, or why the block failed."""
    environment = dict(os.environ)
    environment["PATH"] = f"{folder}/build/release:{environment['PATH']}"
    limit = SLOW_BLOCK_SECONDS if "slow" in block.flags else BLOCK_SECONDS
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(block.commands)],
                              cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit,
                              errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return f"still running after {limit} s; mark it slow or norun"
    if (done.returncode != 0) != ("fails" in block.flags):
        return f"exit status {done.returncode}:\n{done.stdout}"
    return None


def main():
    parser = argparse.ArgumentParser(description="runs the commands of README.md as written")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("readme", type=pathlib.Path)
    options = parser.parse_args()
    try:
        blocks = read_blocks(options.readme.read_text(encoding="utf-8"))
    except ValueError as error:
        print(f"{options.readme}: {error}")
        return 1
    wanted = [b for b in blocks if "norun" not in b.flags
              and (options.slow or "slow" not in b.flags)]
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder, options.readme.resolve().parent, options.program.resolve())
        for block in wanted:
            wrong = run_block(block, folder)
            print(f"{options.readme.name}:{block.line}: {'ok' if wrong is None else wrong}")
            failures += wrong is not None
    print(f"readme_commands: {len(wanted)} blocks run, {len(blocks) - len(wanted)} left out, "
          f"{failures} failed")
    return 1 if failures or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
