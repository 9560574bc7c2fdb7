"""Llama shapes of two sizes and rounded weights: what each reaches, what other programs reach.

Every figure is the median over rounds in which all of them take turns, so that a machine that is
busy for a while is so for all. The fork's figures are those of a llama.cpp fork (ik, f32, the same
shapes) on a quiet machine of two such cores; it is not run here.
"""

import dataclasses
import json
import statistics
import subprocess

LARGE = ("--layers", "12", "--heads", "12", "--dim", "768")
SIZES = {"4 × 128": (), "12 × 768": LARGE}
# tokens/s of the fork: (kind, size, threads).
FORK = {("decode", "4 × 128", 1): 5746, ("decode", "12 × 768", 1): 63.5,
        ("decode", "12 × 768", 2): 127, ("prefill", "4 × 128", 1): 11800,
        ("prefill", "12 × 768", 1): 559, ("prefill", "12 × 768", 2): 1134,
        ("batch", "4 × 128", 2): 8306, ("batch", "12 × 768", 2): 431}
# Least ratios to the fork.
BARS = {("decode", "12 × 768", 1): 1.0, ("decode", "12 × 768", 2): 1.0,
        ("prefill", "4 × 128", 1): 5.0, ("prefill", "12 × 768", 1): 1.7,
        ("batch", "4 × 128", 2): 40000 / 8306, ("batch", "12 × 768", 2): 3.0}
FLAGS = {"decode": ("--tokens", "60"), "prefill": ("--tokens", "120"),
         "batch": ("--sequences", "32", "--tokens", "16")}
TITLES = {"decode": "decode", "prefill": "prefill of 120", "batch": "32 sequences"}


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str
    size: str
    threads: int
    dtype: str = "f32"


def rows_to_measure(threads):
    for kind in ("decode", "prefill", "batch"):
        for size in SIZES:
            for count in threads:
                yield Row(kind, size, count)
                if kind == "decode" and size != "4 × 128":
                    yield Row(kind, size, count, "q8_0")
                    yield Row(kind, size, count, "q4_0")


def once(program, row):
    command = [program, "bench", row.kind, "--arch", "llama", *SIZES[row.size], *FLAGS[row.kind],
               "--dtype", row.dtype, "--threads", str(row.threads), "--repetitions", "3", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["rows"][-1]


def measure(program, threads, rounds, report):
    """{Row: [result of each round]}."""
    results = {row: [] for row in rows_to_measure(threads)}
    for i in range(rounds):
        report(f"larger shapes: round {i + 1} of {rounds}")
        for row, found in results.items():
            found.append(once(program, row))
    return results


def median(results, field):
    return statistics.median(result[field] for result in results)


def cells(row, results):
    found = results[row]
    speed = median(found, "tokens_per_s")
    rate = next((f for f in ("gb_per_s", "gflop_per_s") if f in found[0]), None)
    yield f"{TITLES[row.kind]}, {row.size}, {row.dtype}"
    yield str(row.threads)
    yield f"{speed:,.0f}"
    unit = {"gb_per_s": "GB/s", "gflop_per_s": "GFLOP/s", None: ""}[rate]
    yield f"{median(found, rate):.1f} {unit}" if rate else "–"
    yield f"{median(found, 'roof_share'):.0%}" if rate else "–"
    plain = dataclasses.replace(row, dtype="f32")
    pairs = [ours["tokens_per_s"] / other["tokens_per_s"]
             for ours, other in zip(found, results[plain])]
    yield "–" if row == plain else f"{statistics.median(pairs):.2f}"
    key = (row.kind, row.size, row.threads)
    if row != plain or key not in FORK:
        yield "3.3 × f32" if row.dtype == "q8_0" else "–"
        return
    ratio = speed / FORK[key]
    bar = f" (bar {BARS[key]:.2g}: {'reached' if ratio >= BARS[key] else 'missed'})" \
        if key in BARS else ""
    yield f"{FORK[key]:,g}: {ratio:.2f} ×{bar}"


def table(results):
    yield ("| random weights, llama | threads | tokens/s | rate | of the roof | to f32 "
           "| a llama.cpp fork |")
    yield "|---|---:|---:|---:|---:|---:|---|"
    for row in results:
        yield "| " + " | ".join(cells(row, results)) + " |"
