#!/usr/bin/env python3
"""Measures Kvasir on this machine and prints a summary in Markdown; ./dev bench calls it.

    bench/run.py --build build/bench [--write docs/benchmarks.md]

--write puts the summary between the marks of that file. bench/peers.py runs where a python3 has
torch, unless --no-peers is given.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

import peers
import shapes

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / "tang-lesson.gguf"
KINDS = ("decode", "prefill", "batch", "cache", "train")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# Columns of a table: field, heading, format.
COLUMNS = {
    "decode": (("tokens", "tokens", "d"), ("us_per_token", "µs a token", ".1f"),
               ("us_forward", "of it the step", ".1f"), ("us_sampling", "the draw", ".1f"),
               ("us_start", "step at the start", ".1f"), ("us_end", "at the end", ".1f"),
               ("tokens_per_s", "tokens/s", ",.0f"), ("gb_per_s", "GB/s", ".1f"),
               ("roof_gb_per_s", "roof", ".1f"), ("roof_share", "share", ".0%")),
    "prefill": (("tokens", "tokens", "d"), ("ms", "ms", ".2f"),
                ("tokens_per_s", "tokens/s", ",.0f"), ("gflop_per_s", "GFLOP/s", ".1f"),
                ("roof_gflop_per_s", "roof", ".1f"), ("roof_share", "share", ".0%")),
    "batch": (("sequences", "sequences", "d"), ("tokens", "tokens each", "d"),
              ("ms_per_step", "ms a step", ".3f"), ("tokens_per_s", "tokens/s over all", ",.0f")),
    "cache": (("context", "context", "d"), ("tokens", "tokens", "d"),
              ("ms_on", "ms with cache", ".2f"), ("ms_off", "without", ".2f"),
              ("ratio", "ratio", ".2f"), ("positions_on", "positions with", ",d"),
              ("positions_off", "without", ",d")),
    "train": (("sequences", "sequences a step", "d"), ("tokens", "tokens a step", "d"),
              ("ms_per_step", "ms a step", ".1f"), ("tokens_per_s", "tokens/s", ",.0f"),
              ("gflop_per_s", "GFLOP/s", ".1f"), ("roof_gflop_per_s", "roof", ".1f"),
              ("roof_share", "share", ".0%")),
}
# Of the cache's further tables.
GROWTH = (("tokens", "tokens", "d"), ("step_ms_with", "ms a step with cache", ".3f"),
          ("step_ms_without", "without", ".3f"), ("ratio", "ratio", ".1f"),
          ("text_ms_with", "ms a text with cache", ",.0f"), ("text_ms_without", "without", ",.0f"))
PAGING = (("tokens", "tokens", "d"), ("block_tokens", "a block", "d"),
          ("ms_per_step", "ms a step", ".3f"), ("ratio", "to one block", ".3f"),
          ("waste", "empty slots", ".1%"))
TITLES = {"decode": "Decode: one sequence", "prefill": "Prefill: a prompt in one step",
          "batch": "Many sequences at once", "cache": "With and without the KV cache",
          "train": "Training"}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def output(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def measure(program, kind, flags, threads):
    command = [program, "bench", kind, "--json", "--threads", str(threads), "--repetitions",
               str(flags.repetitions)]
    say(f"{kind}, {threads} {'thread' if threads == 1 else 'threads'}")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: kvasir bench {kind} failed")
    return json.loads(done.stdout)


def markdown_table(columns, rows):
    yield "| " + " | ".join(heading for _, heading, _ in columns) + " |"
    yield "|" + "---:|" * len(columns)
    for row in rows:
        yield "| " + " | ".join("–" if row[field] is None else format(row[field], form)
                                for field, _, form in columns) + " |"


def polynomial(fit, terms):
    if fit is None:
        return "too few lengths to fit"
    parts = [f"{fit[name]:.3g}{term}" for name, term in zip("abc", terms)]
    return f"{' + '.join(parts).replace('+ -', '− ')} (R² {fit['r_squared']:.4f})"


def growth_of_cache(result):
    """How time grows with the text, what blocks cost, what the index costs."""
    for timing in result["timing"]:
        batch = timing["batch"]
        yield f"How it grows, {batch} {'sequence' if batch == 1 else 'sequences'}:"
        yield ""
        yield from markdown_table(GROWTH, timing["lengths"])
        yield ""
        yield ("Fitted, in ms: a step with the cache "
               f"{polynomial(timing['step_with'], ('', '·n'))}; a text without it "
               f"{polynomial(timing['text_without'], ('·n', '·n²'))}, with a cubic term "
               f"{polynomial(timing['text_without_cubic'], ('·n', '·n²', '·n³'))}.")
        yield ""
    yield "Blocks against one block as long as the text, decoding its end:"
    yield ""
    yield from markdown_table(PAGING, result["paging"])
    index = result["index"]
    yield ""
    yield (f"Prefix index, blocks of {index['block_tokens']} tokens: "
           f"{index['hash_ns_per_token']:.1f} ns a token to hash, "
           f"{index['find_ns_per_token']:.1f} to find, "
           f"{index['insert_ns_per_token']:.1f} to insert.")
    yield ""


def processor():
    found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(),
                      re.MULTILINE)
    return found.group(1) if found else platform.processor() or platform.machine()


def cached_setting(build, name):
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", (build / "CMakeCache.txt").read_text(),
                      re.MULTILINE)
    return found.group(1) if found else ""


def machine(build, target):
    compiler = output(cached_setting(build, "CMAKE_CXX_COMPILER"), "--version").partition("\n")[0]
    kind = cached_setting(build, "CMAKE_BUILD_TYPE")
    changed = " with changes" if output("git", "status", "--porcelain", "-uno") else ""
    commit = output("git", "rev-parse", "--short=12", "HEAD") or "unknown"
    yield f"- processor: {processor()}, {os.cpu_count()} CPUs seen; instruction set used: {target}"
    options = cached_setting(build, f"CMAKE_CXX_FLAGS_{kind.upper()}")
    yield f"- compiler: {compiler}, {kind} ({options})"
    yield f"- commit: {commit}{changed}; {time.strftime('%Y-%m-%d', time.gmtime())}"
    yield f"- load average at the start: {os.getloadavg()[0]:.2f}"


def start_and_memory(program, repetitions):
    """Median time of a whole run that generates one token, and the memory of a longer one."""
    def run(tokens):
        begin = time.perf_counter()
        process = subprocess.Popen([program, "generate", "-m", MODEL, "-p", "春", "-n", str(tokens),
                                    "--seed", "1", "--threads", "1"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit("bench: kvasir generate failed")
        return time.perf_counter() - begin, usage.ru_maxrss
    say("start and memory")
    seconds = statistics.median(run(1)[0] for _ in range(repetitions))
    resident = run(120)[1] * 1024 / 1e6
    yield "### Bundled model: start and memory"
    yield ""
    yield (f"`generate -n 1`, from start to exit: {1e3 * seconds:.1f} ms, median of {repetitions}. "
           f"`generate -n 120`: {resident:.1f} MB resident at most (bar: 40).")
    yield ""


def compare_with_peers(program, flags):
    for python in dict.fromkeys(("/usr/bin/python3", sys.executable)):
        if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            break
    else:
        say("no python3 here has torch: not compared with PyTorch")
        return []
    say("against PyTorch")
    done = subprocess.run([python, "-B", peers.__file__, "--program", program, "--pairs",
                           str(flags.pairs), "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit("bench: bench/peers.py failed")
    return ["### Against PyTorch", "", *peers.table(json.loads(done.stdout)), ""]


def larger_shapes(program, flags):
    results = shapes.measure(program, sorted({1, 2}), flags.rounds, say)
    return ["### Larger shapes and rounded weights", "",
            f"Medians of {flags.rounds} rounds in which all rows take turns; the fork's figures "
            "are of another, quiet run on such a machine.", "", *shapes.table(results), ""]


def products(build):
    """What the programs about single products print; they check before they time."""
    for name, title in (("gemv_bench", "The products of a step, and reading as many bytes"),
                        ("sgemm_bench", "The products of training, and oneDNN's")):
        program = build / name
        if not program.exists():
            say(f"there is no {program}: left out")
            continue
        say(name)
        done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: {name} failed")
        yield from (f"### {title}", "", "```", *done.stdout.rstrip().splitlines(), "```", "")


def summary(program, flags):
    lines = []
    target = shape = None
    for kind in flags.kinds:
        lines += [f"### {TITLES[kind]}", ""]
        for threads in flags.threads:
            result = measure(program, kind, flags, threads)
            target, shape = result["target"], result["shape"]
            lines += [f"{threads} {'thread' if threads == 1 else 'threads'}:", "",
                      *markdown_table(COLUMNS[kind], result["rows"]), ""]
            if kind == "cache":
                lines += growth_of_cache(result)
    if flags.rounds > 0:
        lines += larger_shapes(program, flags)
    lines += products(flags.build)
    if MODEL.exists():
        lines += start_and_memory(program, flags.repetitions)
    if flags.peers:
        lines += compare_with_peers(program, flags)
    head = [*machine(flags.build, target),
            f"- shape: {shape['layers']} layers, {shape['heads']} heads, width "
            f"{shape['embedding']}, vocabulary {shape['vocab']}, context {shape['context']} "
            "(unless a row says another), "
            f"f32, random weights: {shape['weight_bytes_per_step'] / 1e6:.2f} MB moved a token",
            f"- medians of {flags.repetitions} repetitions", ""]
    return "\n".join(head + lines).rstrip() + "\n"


def write_between_marks(path, text):
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"bench: {path} has no lines '{BEGIN}' and '{END}'")
    path.write_text(f"{before}{begin}\n{text}{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "bench",
                        help="build folder with kvasir; default build/bench")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="default 1; e.g. 1 2")
    parser.add_argument("--repetitions", type=int, default=9, help="default 9")
    parser.add_argument("--pairs", type=int, default=11, help="of turns with a peer; default 11")
    parser.add_argument("--rounds", type=int, default=5,
                        help="of the larger shapes; 0 leaves them out; default 5")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="put the summary between the marks of this file")
    flags = parser.parse_args()
    if min(flags.repetitions, flags.pairs, *flags.threads) < 1:
        parser.error("--repetitions, --pairs and --threads must be at least 1")
    program = flags.build.resolve() / "kvasir"
    if not program.exists():
        parser.error(f"there is no {program}: build it first")
    if os.getloadavg()[0] > 0.5:
        say(f"the machine is busy (load {os.getloadavg()[0]:.1f}): ratios hold, times do not")
    text = summary(str(program), flags)
    print(text, end="")
    if flags.write:
        write_between_marks(flags.write, text)
        say(f"written to {flags.write}")


if __name__ == "__main__":
    main()
