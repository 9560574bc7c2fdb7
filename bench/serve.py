#!/usr/bin/env python3
"""Measures the server on this machine: what HTTP costs, warm prompts, overload, waiting.

    bench/serve.py --program build/release/kvasir [--layers 4 --dim 128] [--seconds 10]
                   [--only NAME]

Each line is one measurement, as JSON. Clients run on the same machine and take their share of it.
The model has random weights (llama, heads of 32 or 64); it is written to a temporary file.
"""

import argparse
import array
import json
import pathlib
import random
import selectors
import socket
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


class Stream:
    """One streamed completion; counts events as they come."""

    def __init__(self, server, body):
        self.times, self.done, self.status, self.head = [], False, 0, b""
        self.begin = time.perf_counter()
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        text = json.dumps({"model": server.model, "stream": True, **body}).encode()
        self.socket.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        self.socket.setblocking(False)

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        now = time.perf_counter()
        if self.status == 0:
            self.head += data
            if len(self.head) > 12:
                self.status = int(self.head[9:12])
        self.times += [now] * data.count(b'"finish_reason":null')
        if not data:
            self.done = True
            self.socket.close()


def run(streams, until=None):
    """Reads them all to their ends, or until a moment."""
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.socket, selectors.EVENT_READ, stream)
        left = len(streams)
        while left and (until is None or time.perf_counter() < until):
            for key, _ in selector.select(0.1):
                stream = key.data
                stream.read()
                if stream.done:
                    selector.unregister(key.fileobj)
                    left -= 1


def prompt(rng, count):
    return [rng.randrange(HEADS, VOCAB) for _ in range(count)]


def throughput(server, model, program, threads):
    """32 streams of 100 tokens, from when all have begun to when the first ends; and the bare
    model's steps, by `bench batch`, in turn."""
    rng = random.Random(2)
    served, bare = [], []
    for _ in range(5):
        streams = [Stream(server, {"prompt": prompt(rng, 16), "max_tokens": 100, "seed": i})
                   for i in range(32)]
        run(streams)
        begin = max(stream.times[0] for stream in streams)
        end = min(stream.times[-1] for stream in streams)
        tokens = sum(1 for s in streams for t in s.times if begin < t <= end)
        served.append(tokens / (end - begin))
        done = subprocess.run([program, "bench", "batch", "-m", model, "--sequences", "32",
                               "--tokens", "100", "--repetitions", "3", "--threads", str(threads),
                               "--json"], capture_output=True, check=True)
        bare.append(next(iter(find(json.loads(done.stdout), "tokens_per_s"))))
    return {"streams": 32, "tokens_per_s": statistics.median(served),
            "bare_tokens_per_s": statistics.median(bare),
            "share": statistics.median(a / b for a, b in zip(served, bare))}


def find(value, name):
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from find(item, name)


def warm(server, length):
    """First token of a prompt that is cached whole, against a step of the same length."""
    rng = random.Random(3)
    ids = prompt(rng, length)
    firsts, steps = [], []
    for i in range(12):
        stream = Stream(server, {"prompt": ids, "max_tokens": 12, "seed": i})
        run([stream])
        if i > 0:
            firsts.append(stream.times[0] - stream.begin)
            steps += [b - a for a, b in zip(stream.times, stream.times[1:])]
    first, step = statistics.median(firsts), statistics.median(steps)
    return {"prompt": length, "first_token_ms": first * 1e3, "step_ms": step * 1e3,
            "bar_ms": step * 1.5e3 + 1, "within": first <= step * 1.5 + 1e-3}


def overload(server, seconds, clients):
    """Answers a second at full load, then with ten times as many requests as that."""
    rng = random.Random(4)
    body = {"max_tokens": 20}

    def load(rate):
        """New requests at this rate; None: whenever one ends. Whole answers and refusals a
        second."""
        streams, finished, refused = [], 0, 0
        begin = time.perf_counter()
        sent = 0
        while time.perf_counter() < begin + seconds:
            now = time.perf_counter() - begin
            while (len(streams) < clients if rate is None else sent < now * rate):
                streams.append(Stream(server, {"prompt": prompt(rng, 8), "seed": sent, **body}))
                sent += 1
            run(streams, time.perf_counter() + 0.02)
            for stream in [s for s in streams if s.done]:
                streams.remove(stream)
                finished += stream.status == 200
                refused += stream.status == 429
        elapsed = time.perf_counter() - begin
        for stream in streams:
            stream.socket.close()
        return finished / elapsed, refused / elapsed

    peak, _ = load(None)
    time.sleep(1)
    goodput, refusals = load(10 * peak)
    return {"peak_per_s": peak, "offered_per_s": 10 * peak, "goodput_per_s": goodput,
            "refused_per_s": refusals, "share": goodput / peak}


def waiting(server, seconds, length):
    """Between tokens of 8 streams while long prompts arrive, two at a time."""
    rng = random.Random(5)
    streams = [Stream(server, {"prompt": prompt(rng, 8), "max_tokens": 4000, "seed": i})
               for i in range(8)]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        long = [Stream(server, {"prompt": prompt(rng, length), "max_tokens": 1}) for _ in range(2)]
        with selectors.DefaultSelector() as selector:
            for stream in streams + long:
                if not stream.done:
                    selector.register(stream.socket, selectors.EVENT_READ, stream)
            while not all(s.done for s in long) and time.perf_counter() < end + 5:
                for key, _ in selector.select(0.1):
                    key.data.read()
                    if key.data.done:
                        selector.unregister(key.fileobj)
    gaps = sorted(b - a for s in streams for a, b in zip(s.times, s.times[1:]))
    for stream in streams:
        stream.socket.close()
    p50, p99 = gaps[len(gaps) // 2], gaps[len(gaps) * 99 // 100]
    return {"gaps": len(gaps), "p50_ms": p50 * 1e3, "p99_ms": p99 * 1e3, "ratio": p99 / p50}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", choices=("throughput", "warm", "overload", "waiting"))
    flags = parser.parse_args()
    serving.PROGRAM = flags.program
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "bench.gguf"
        write_model(model, flags.layers, flags.dim, flags.context)
        measurements = {
            "throughput": lambda s: throughput(s, model, flags.program, flags.threads),
            "warm": lambda s: warm(s, 1000),
            "overload": lambda s: overload(s, flags.seconds, 32),
            "waiting": lambda s: waiting(s, flags.seconds, 1000)}
        for name, measure in measurements.items():
            if flags.only not in (None, name):
                continue
            with serving.Served("--max-batch", 32, "--max-waiting", 32, "--drain-seconds", 0,
                                "--no-access-log", model=model, threads=flags.threads) as server:
                print(json.dumps({"measured": name, "layers": flags.layers, "dim": flags.dim,
                                  **measure(server)}), flush=True)


if __name__ == "__main__":
    main()
