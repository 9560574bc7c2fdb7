#!/usr/bin/env python3
"""Makes a GGUF file of a tiny model around a vocabulary, so that masks over it can be measured.

    bench/vocabulary_model.py VOCABULARY.json OUT.gguf

VOCABULARY.json maps pieces to ids, as in a SentencePiece vocabulary written as JSON: ▁ stands for a
space, <0x00> to <0xFF> are bytes, <unk>, <s> and </s> are special. The weights mean nothing: the
file is for `kvasir bench masks -m OUT.gguf --schemas DIR` and `check`, not for texts.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
import gguf_file  # noqa: E402  (its folder is put on the path above)

SPECIAL = {"<unk>": 2, "<s>": 3, "</s>": 3}
NORMAL, BYTE = 1, 6


def type_of(piece):
    if piece in SPECIAL:
        return SPECIAL[piece]
    return BYTE if re.fullmatch("<0x[0-9A-F]{2}>", piece) else NORMAL


def main():
    parser = argparse.ArgumentParser(description="makes a tiny GGUF model around a vocabulary")
    parser.add_argument("vocabulary", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    ids = json.loads(arguments.vocabulary.read_text(encoding="utf-8"))
    pieces = sorted(ids, key=ids.get)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        sys.exit(f"vocabulary_model: the ids of {arguments.vocabulary} are not 0, 1, 2, …")
    vocabulary = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": pieces,
                  "tokenizer.ggml.scores": [-float(i) for i in range(len(pieces))],
                  "tokenizer.ggml.token_type": [type_of(piece) for piece in pieces]}
    for name, key in (("<unk>", "unknown"), ("<s>", "bos"), ("</s>", "eos")):
        if name in ids:
            vocabulary[f"tokenizer.ggml.{key}_token_id"] = ids[name]
    arguments.out.write_bytes(gguf_file.gpt2_model(vocabulary))


if __name__ == "__main__":
    main()
