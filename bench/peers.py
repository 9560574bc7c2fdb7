#!/usr/bin/env python3
"""Kvasir against a PyTorch program, in one run; one thread each, but training on two of ours:
PyTorch trains no faster on two.

Runs take turns, ours then theirs, so that a machine that is busy or warm for a while is so for
both; what counts is the median of the pairs' ratios. Needs a python3 that has torch.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

PEER = pathlib.Path(__file__).with_name("torch_peer.py")
TOKENS = 120
# Least ratios: a forward step; a whole text recomputed at each step; a step of training.
BARS = {"decode": 9.0, "no_cache": 4.0, "train": 2.6}
TITLES = {"decode": "decode, with cache: a step", "no_cache": f"{TOKENS} tokens, without cache",
          "train": "training, ours on two threads"}
TRAIN_TOKENS = 32 * 128  # A step's.


def environment():
    """One thread, PyTorch's best here; OpenBLAS chooses its own kernels, which are its fastest.
    Memory that malloc gave back after each step would be most of a training step's time."""
    kept = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "MALLOC_MMAP_THRESHOLD_": str(1 << 33), "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
            "MALLOC_TOP_PAD_": str(1 << 30)}


class TorchPeer:
    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-B", PEER], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment())
        self.version = self.answer().removeprefix("ready ")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def answer(self):
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit("peers: the PyTorch program ended early")
        return line

    def microseconds(self, kind):
        steps, tokens = (2, 2 * TRAIN_TOKENS) if kind == "train" else (TOKENS, TOKENS)
        word = {"decode": "cached", "no_cache": "plain", "train": "train"}[kind]
        self.process.stdin.write(f"{word} {steps}\n")
        self.process.stdin.flush()
        return 1e6 * float(self.answer()) / tokens


def our_microseconds(program, kind):
    """A token, as `kvasir bench` measures it."""
    measured = {"decode": "decode", "no_cache": "cache", "train": "train"}[kind]
    arguments = [program, "bench", measured, "--threads", "2" if kind == "train" else "1",
                 "--repetitions", "1", "--json"]
    if kind != "train":
        arguments += ["--tokens", str(TOKENS)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, env=environment(), check=True)
    row = json.loads(done.stdout)["rows"][0]
    if kind == "train":
        return 1e6 / row["tokens_per_s"]
    return row["us_forward"] if kind == "decode" else 1e3 * row["ms_off"] / TOKENS


def compare(program, pairs, report):
    """{"torch": version, kind: {"us_kvasir", "us_torch", "ratio", "least", "most", "bar", …}}."""
    with TorchPeer() as peer:
        results = {"torch": peer.version, "pairs": pairs, "tokens": TOKENS}
        for kind, bar in BARS.items():
            our_microseconds(program, kind)  # Files and caches warm, clocks up.
            peer.microseconds(kind)
            ours, theirs = [], []
            for i in range(pairs):
                ours.append(our_microseconds(program, kind))
                theirs.append(peer.microseconds(kind))
                report(f"{kind}: pair {i + 1} of {pairs}: {ours[-1]:.1f} and {theirs[-1]:.1f} us")
            ratios = [their / our for our, their in zip(ours, theirs)]
            results[kind] = {"us_kvasir": statistics.median(ours),
                             "us_torch": statistics.median(theirs),
                             "ratio": statistics.median(ratios), "least": min(ratios),
                             "most": max(ratios), "bar": bar,
                             "reached": statistics.median(ratios) >= bar}
    return results


def table(results):
    lines = [f"| median of {results['pairs']} pairs | Kvasir, µs a token "
             f"| PyTorch {results['torch']} | ratio | least … most | bar |",
             "|---|---:|---:|---:|---:|---:|"]
    for kind, title in TITLES.items():
        row = results[kind]
        lines.append(f"| {title} | {row['us_kvasir']:.1f} | {row['us_torch']:.1f} "
                     f"| {row['ratio']:.2f} × | {row['least']:.2f} … {row['most']:.2f} "
                     f"| ≥ {row['bar']:g}: {'reached' if row['reached'] else 'missed'} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="kvasir, built for speed")
    parser.add_argument("--pairs", type=int, default=11, help="default 11")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    flags = parser.parse_args()
    if flags.pairs < 1:
        parser.error("--pairs must be at least 1")
    results = compare(flags.program, flags.pairs, lambda line: print(line, file=sys.stderr))
    print(json.dumps(results, indent=2) if flags.json else "\n".join(table(results)))


if __name__ == "__main__":
    main()
