#!/usr/bin/env python3
"""Measures the server on this machine: what HTTP costs, warm prompts, overload, waiting.

    ninja -C build/release kvasir stream_load
    bench/serve.py --program build/release/kvasir --client build/release/stream_load
                   [--layers 4 --dim 128] [--seconds 10] [--only NAME]

Each line is one measurement, as JSON. Clients run on the same machine and take their share of it.
The model has random weights (llama, heads of 32 or 64); it is written to a temporary file.
"""

import argparse
import array
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "server")]
import gguf_file  # noqa: E402  (its folder is put on the path above)
import serving  # noqa: E402  (likewise)

VOCAB = 6289
HEADS = 3 + 256  # The special tokens and the bytes come first.


def weights(rng, count):
    """So many small numbers; blocks of random ones, repeated."""
    block = array.array("f", (rng.uniform(-0.05, 0.05) for _ in range(65521)))
    return (block * (count // len(block) + 1))[:count].tobytes()


def write_model(path, layers, dim, context):
    rng = random.Random(1)
    heads = dim // (32 if dim < 512 else 64)
    inner = (dim * 8 // 3 + 31) // 32 * 32
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    pieces += [chr(0x4E00 + i) for i in range(VOCAB - len(pieces))]
    metadata = {
        "general.architecture": "llama", "general.name": "bench", "llama.vocab_size": VOCAB,
        "llama.context_length": context, "llama.embedding_length": dim, "llama.block_count": layers,
        "llama.feed_forward_length": inner, "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads, "llama.rope.dimension_count": dim // heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.scores": [0.0] * VOCAB,
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (VOCAB - HEADS),
        "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_space_prefix": False}
    tensors = [("token_embd.weight", (VOCAB, dim)), ("output_norm.weight", (dim,)),
               ("output.weight", (VOCAB, dim))]
    for layer in range(layers):
        for name, shape in (("attn_norm", (dim,)), ("attn_q", (dim, dim)), ("attn_k", (dim, dim)),
                            ("attn_v", (dim, dim)), ("attn_output", (dim, dim)),
                            ("ffn_norm", (dim,)), ("ffn_gate", (inner, dim)),
                            ("ffn_up", (inner, dim)), ("ffn_down", (dim, inner))):
            tensors.append((f"blk.{layer}.{name}.weight", shape))
    gguf_file.write(path, metadata, tensors, lambda count: weights(rng, count))


class Client:
    """Runs the client program, which costs little of the machine; see bench/stream_load.cc."""

    def __init__(self, program, server, folder):
        self.program, self.server, self.folder = program, server, pathlib.Path(folder)

    def file(self, name, bodies):
        path = self.folder / name
        path.write_text("".join(json.dumps({"model": self.server.model, "stream": True, **body})
                                + "\n" for body in bodies), encoding="utf-8")
        return path

    def run(self, timed=None, load=None, **flags):
        """Its report, with the seconds of processor that the server took meanwhile."""
        command = [self.program, "--port", str(self.server.port)]
        for name, bodies in (("timed", timed), ("load", load)):
            if bodies:
                command += [f"--{name}", str(self.file(name, bodies))]
        for name, value in flags.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        before = self.server.cpu_seconds()
        done = subprocess.run(command, capture_output=True, check=True)
        report = json.loads(done.stdout)
        report["server_cpu_seconds"] = self.server.cpu_seconds() - before
        for stream in report["streams"]:
            if stream["status"] != 200:
                raise RuntimeError(f"a stream was answered {stream['status']}")
        return report


def prompt(rng, count):
    return [rng.randrange(HEADS, VOCAB) for _ in range(count)]


def throughput(client, model, flags):
    """32 streams of 100 tokens, from their first request to the last token of the last; and the
    engine alone with as many, by `bench engine`, in turn. The client looks 200 times a second at
    what has come, so that it takes little of the cores; eager_tokens_per_s is with one that reads
    each token at once."""
    rng = random.Random(2)
    rates = {"bare": [], "served": [], "eager": []}
    share, cpu = [], []
    for _ in range(flags.repetitions):
        for name, poll_ms in (("served", 5), ("eager", 0)):
            bodies = [{"prompt": prompt(rng, 16), "max_tokens": 100, "seed": i} for i in range(32)]
            report = client.run(timed=bodies, poll_ms=poll_ms)
            tokens = sum(len(stream["times"]) for stream in report["streams"])
            if tokens != 3200:
                raise RuntimeError(f"{tokens} tokens came instead of 3200")
            rates[name].append(tokens / max(s["times"][-1] for s in report["streams"]))
            if name == "served":
                cpu.append(report["client_cpu_seconds"])
        done = subprocess.run([flags.program, "bench", "engine", "-m", model, "--sequences", "32",
                               "--tokens", "100", "--repetitions", "3", "--threads",
                               str(flags.threads), "--json"], capture_output=True, check=True)
        rates["bare"].append(next(find(json.loads(done.stdout), "tokens_per_s")))
        share.append(rates["served"][-1] / rates["bare"][-1])
    median = {name: statistics.median(values) for name, values in rates.items()}
    return {"streams": 32, "tokens_per_s": median["served"], "bare_tokens_per_s": median["bare"],
            "share": statistics.median(share), "eager_tokens_per_s": median["eager"],
            "client_cpu_s": statistics.median(cpu)}


def find(value, name):
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from find(item, name)


def gaps(stream):
    return [b - a for a, b in zip(stream["times"], stream["times"][1:])]


def warm(client, length):
    """First token of a prompt that is cached whole, against a step of the same length."""
    rng = random.Random(3)
    ids = prompt(rng, length)
    firsts, steps = [], []
    for i in range(12):
        stream = client.run(timed=[{"prompt": ids, "max_tokens": 12, "seed": i}])["streams"][0]
        if i > 0:
            firsts.append(stream["times"][0] - stream["begin"])
            steps += gaps(stream)
    first, step = statistics.median(firsts), statistics.median(steps)
    return {"prompt": length, "first_token_ms": first * 1e3, "step_ms": step * 1e3,
            "bar_ms": step * 1.5e3 + 1, "within": first <= step * 1.5 + 1e-3}


def overload(client, seconds, clients):
    """Answers a second at full load, then with ten times as many requests as that."""
    rng = random.Random(4)
    load = [{"prompt": prompt(rng, 8), "seed": i, "max_tokens": 20} for i in range(1000)]
    full = client.run(load=load, at_once=clients, seconds=seconds)
    peak = full["finished"] / full["seconds"]
    time.sleep(1)
    over = client.run(load=load, rate=10 * peak, seconds=seconds)
    goodput = over["finished"] / over["seconds"]
    return {"peak_per_s": peak, "offered_per_s": over["sent"] / over["seconds"],
            "goodput_per_s": goodput, "refused_per_s": over["refused"] / over["seconds"],
            "other": over["other"], "share": goodput / peak,
            "client_cpu_share": over["client_cpu_seconds"] / over["seconds"]}


def waiting(client, seconds, length):
    """Between tokens of 8 streams while long prompts arrive, two at a time."""
    rng = random.Random(5)
    timed = [{"prompt": prompt(rng, 8), "max_tokens": 2000, "seed": i} for i in range(8)]
    # None begins like another, so that each is read whole.
    load = [{"prompt": prompt(rng, length), "max_tokens": 1} for _ in range(1000)]
    report = client.run(timed=timed, load=load, at_once=2, seconds=seconds)
    between = sorted(gap for stream in report["streams"] for gap in gaps(stream))
    p50, p99 = between[len(between) // 2], between[len(between) * 99 // 100]
    return {"gaps": len(between), "long_prompts": report["finished"], "p50_ms": p50 * 1e3,
            "p99_ms": p99 * 1e3, "ratio": p99 / p50}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--client", required=True, help="the program stream_load")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--only", choices=("throughput", "warm", "overload", "waiting"))
    flags = parser.parse_args()
    serving.PROGRAM = flags.program
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "bench.gguf"
        write_model(model, flags.layers, flags.dim, flags.context)
        measurements = {
            "throughput": lambda client: throughput(client, model, flags),
            "warm": lambda client: warm(client, 1000),
            "overload": lambda client: overload(client, flags.seconds, 32),
            "waiting": lambda client: waiting(client, flags.seconds, 1000)}
        for name, measure in measurements.items():
            if flags.only not in (None, name):
                continue
            with serving.Served("--max-batch", 32, "--max-waiting", 32, "--drain-seconds", 0,
                                "--no-access-log", model=model, threads=flags.threads) as server:
                client = Client(flags.client, server, folder)
                print(json.dumps({"measured": name, "layers": flags.layers, "dim": flags.dim,
                                  **measure(client)}), flush=True)


if __name__ == "__main__":
    main()
