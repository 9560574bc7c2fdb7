"""Models that llama.cpp and Kvasir both run, and how far apart their answers may lie.

tests/npm/llama_cpp/compare.py runs both; llama_cpp_recorded_test.py compares with a recording.
"""

import json
import math
import pathlib
import shutil
import subprocess

import gguf_file
import hf_folder
from dump_test import read_npy

DTYPES = ("f32", "f16", "q8_0", "q4_0")
TEXT = "abc ab cab aa bcb"
# By how much llama.cpp rounds an activation before a product: to f16 beside f16 weights; beside
# Q8_0 and Q4_0 to Q8_0, at most half a step of the block's largest / 127, and its scale to f16.
F16, UNIT = 2**-11, 2**-24  # Half a unit in the last place of f16, of f32.
ROUNDING = {"f32": 0.0, "f16": F16, "q8_0": 1 / 254 + F16, "q4_0": 1 / 254 + F16}


class Gpt2(hf_folder.Gpt2):
    HEADS, WIDTH, INNER, CONTEXT = 2, 32, 64, 64


class Llama(hf_folder.Llama):
    HEADS, KV_HEADS, HEAD_DIM, WIDTH, INNER, CONTEXT = 4, 2, 16, 32, 64, 64


def make():
    """By name: random weights, whole blocks in every row."""
    letters = [gguf_file.ALPHABET[b] for b in range(256)]
    regex = hf_folder.LLAMA3_REGEX
    characters = hf_folder.spaces_tokenizer(led=False, merged=False)
    gpt2 = {"gpt2-bytes": Gpt2(tokenizer=hf_folder.byte_level_tokenizer(letters=letters)),
            "gpt2-characters": Gpt2(tokenizer=characters)}
    llama = {"llama-bytes": Llama(tokenizer=hf_folder.byte_level_tokenizer(
        regex, start=True, letters=letters)), "llama-characters": Llama(tokenizer=characters)}
    for model in gpt2.values():
        del model.config["eos_token_id"], model.config["bos_token_id"]
    for model in llama.values():
        del model.config["eos_token_id"]
    return gpt2 | llama


class Files:
    """A model as a GGUF file of one type, and as the numbers that the file means."""

    def __init__(self, program, folder, name, dtype, model):
        self.program, self.model, self.dtype = program, model, dtype
        folder = pathlib.Path(folder)
        shutil.rmtree(folder / name, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        source = hf_folder.write(folder / name, model)
        self.gguf = folder / f"{name}.{dtype}.gguf"
        self.run("convert", source, self.gguf, "--dtype", dtype)
        # The rounded weights, exactly: block types become f32.
        meant = folder / f"{name}.{dtype}"
        shutil.rmtree(meant, ignore_errors=True)
        self.run("convert", self.gguf, meant, "--format", "safetensors")
        self.meant = hf_folder.with_weights(model, meant / "model.safetensors")

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], check=True,
                              stdout=subprocess.PIPE).stdout

    def log_probs(self):
        """Ours: ids, and a row of log-probabilities for each."""
        path = self.gguf.with_suffix(".npy")
        ids = json.loads(self.run("logits", "-m", self.gguf, "-p", TEXT, "--out", path, "--json",
                                  "--threads", 1))["token_ids"]
        (rows, width), values = read_npy(path)
        logits = [values[i * width:(i + 1) * width] for i in range(rows)]
        return ids, [log_softmax(row) for row in logits]

    def bound(self, ids):
        """Between the log-probabilities of the two. Each errs by as many f32 roundings as lie one
        after the other on the way to a logit, relative to the sum of absolute terms of the last
        sum. Theirs errs too by rounding the inputs of four products a layer and of the head, and
        GELU by a table of f16. Those errors are far larger, independent and spread evenly, so they
        add by squares, relative to the root of the last sum's squared terms, with the largest of a
        block in place of each number where a block is rounded; six deviations are allowed. Twice,
        for a logit and for the sum of all. (First order, as in the tests against PyTorch.)"""
        _, magnitude = self.meant.forward(ids)
        rows, head = self.meant.last
        plain = hf_folder.root_of_squares(rows, head)
        blocks = hf_folder.root_of_squares([hf_folder.by_blocks(row) for row in rows], head)
        rounded = ROUNDING[self.dtype] * (blocks if self.dtype.startswith("q") else plain)
        squares = (4 * hf_folder.LAYERS + 1) * rounded ** 2
        if isinstance(self.model, Gpt2):  # Before the table and behind it.
            squares += 2 * hf_folder.LAYERS * (F16 * plain) ** 2
        even = math.sqrt(squares / 3)  # An error spread evenly up to e deviates by e / √3.
        both = 2 * self.model.roundings() * UNIT * magnitude
        # A sum of probabilities in f32; and a recording holds seven digits.
        return 2 * (both + 6 * even) + (self.meant.vocab + 4) * UNIT + 1e-5

    def compare(self, their_ids, their_rows):
        """their_rows: by position, log-probabilities by id (a list or a dictionary). Faults, and a
        note of the largest difference."""
        ids, rows = self.log_probs()
        if ids != their_ids:
            return [f"tokens {ids}, theirs {their_ids}"], "other tokens"
        bound, faults, largest, ties = self.bound(ids), [], 0.0, 0
        for position, (ours, theirs) in enumerate(zip(rows, their_rows)):
            pairs = theirs.items() if isinstance(theirs, dict) else enumerate(theirs)
            theirs = dict(pairs)
            worst = max(theirs, key=lambda i, o=ours, t=theirs: abs(o[i] - t[i]))
            difference = abs(ours[worst] - theirs[worst])
            largest = max(largest, difference)
            if difference > bound:
                faults.append(f"position {position}, token {worst}: {ours[worst]:.6f}, theirs "
                              f"{theirs[worst]:.6f}")
            second, first = sorted(ours)[-2:]
            if first - second <= bound:  # Their difference errs as one log-probability does.
                ties += 1
            elif ours.index(first) != max(theirs, key=theirs.get):
                faults.append(f"position {position}: another token is the best")
        note = (f"{len(ids)} positions, largest difference {largest:.2e} of {bound:.2e} allowed, "
                f"{ties} with two best within it")
        return faults, note


def log_softmax(row):
    top = max(row)
    total = top + math.log(sum(math.exp(x - top) for x in row))
    return [x - total for x in row]
