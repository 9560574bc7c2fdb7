"""What the tests of known faults share: the program, the server, and models whose next tokens the
test decides.

Each *_test.py here: --program KVASIR --tiny-model TINY_MODEL [unittest's arguments]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(TESTS / "cli"), str(TESTS / "server")]

import gguf_file  # pylint: disable=wrong-import-position
import program  # pylint: disable=wrong-import-position
import serving  # pylint: disable=wrong-import-position

# The vocabulary of the scripted models: a token for each byte, in order, then these, then the end.
MERGES = [("a", "b"), ("ab", "c"), ("x", "A"), ("xA", "B"), ("xAB", "C"), ("xABC", "y")]
VOCABULARY = gguf_file.byte_level_vocabulary(MERGES, "gpt-2")
ABC, XABCY, EOS = 257, 261, 262
CHARACTERS = "春风花月江山水人天云日夜雨白青流霜一不上，。\n ab"  # Of tiny.gguf.


def model(hidden, head, context, width=8, vocabulary=None, tied=False, more=()):
    """A GPT-2 that looks at nothing but positions: `hidden(p)` is what its last norm gets at
    position p (width numbers; None: it gives 1, 0, 0, … everywhere), `head(token)` a row of its
    output matrix. more: metadata."""
    vocabulary = vocabulary or VOCABULARY
    tokens = len(vocabulary["tokenizer.ggml.tokens"])
    metadata = {"general.architecture": "gpt2", "general.name": "scripted",
                "gpt2.context_length": context, "gpt2.embedding_length": width,
                "gpt2.block_count": 1, "gpt2.feed_forward_length": 8,
                "gpt2.attention.head_count": 1,
                "gpt2.attention.layer_norm_epsilon": 1e-5, **vocabulary, **dict(more)}
    shapes = {"attn_norm": (width,), "attn_qkv": (3 * width, width), "attn_output": (width, width),
              "ffn_norm": (width,), "ffn_up": (8, width), "ffn_down": (width, 8)}
    zeros = {f"blk.0.{name}.weight": shape for name, shape in shapes.items()}
    zeros |= {f"blk.0.{name}.bias": shape[:1] for name, shape in shapes.items()}
    zeros["token_embd.weight"] = (tokens, width)
    tensors = [(name, shape, [0.0] * (shape[0] * (shape[1] if len(shape) > 1 else 1)))
               for name, shape in zeros.items()]
    positions = [0.0] * (context * width) if hidden is None else [
        number for p in range(context) for number in hidden(p)]
    tensors.append(("position_embd.weight", (context, width), positions))
    tensors.append(("output_norm.weight", (width,), [float(hidden is not None)] * width))
    tensors.append(("output_norm.bias", (width,),
                    [float(hidden is None)] + [0.0] * (width - 1)))
    if not tied:
        tensors.append(("output.weight", (tokens, width),
                        [number for token in range(tokens) for number in head(token)]))
    return gguf_file.encode(metadata, tensors)


def scripted(tokens, context=64, start=0):
    """A model that greedily writes these tokens after a prompt of one token; then the end, for
    ever. Whatever it has read: only how many."""
    width = context
    script = {position + start: token for position, token in enumerate(tokens)}

    def head(token):
        return [64.0 if script.get(p, EOS) == token else 0.0 for p in range(width)]
    return model(lambda p: [float(j == p) for j in range(width)], head, context, width)


def anthology(*texts):
    """A scripted model of several texts (strings, bytes or lists of tokens), each followed by the
    end token; and the prompt after which each comes, in the same order."""
    tokens, prompts = [], []
    for text in texts:
        prompts.append([97] * (len(tokens) + 1))
        tokens += list(text.encode() if isinstance(text, str) else text) + [EOS]
    return scripted(tokens, context=len(tokens) + 8), prompts


def constant(logits, context=64, vocabulary=None):
    """A model of these logits ({token: logit}; −20 for the others) at every position."""
    return model(None, lambda token: [logits.get(token, -20.0)] + [0.0] * 7, context,
                 vocabulary=vocabulary)


class CaseTest(program.CliTest):
    def file(self, name, content):
        return pathlib.Path(self.path(name, content))

    def refused_by(self, server, status, body, path="/v1/completions"):
        """The error object of a request that must be refused; the server still lives."""
        got, _, text = server.ask(path, body)
        self.assertEqual(got, status, f"{body}: {text[:300]}")
        self.assertEqual(server.ask("/health")[0], 200)
        return serving.json.loads(text)["error"]


def tiny(name, context, characters="", architecture="gpt2"):
    """A small model of random weights with a character vocabulary; made once."""
    path = serving.SHARED / f"{name}.gguf"
    if not path.exists():
        subprocess.run([MAKER, path, str(context), characters, architecture], check=True)
    return path


MAKER = None


def main():
    global MAKER  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tiny-model", required=True)
    flags, rest = parser.parse_known_args()
    program.PROGRAM = serving.PROGRAM = os.path.abspath(flags.program)
    MAKER = os.path.abspath(flags.tiny_model)
    with tempfile.TemporaryDirectory() as folder:
        program.SHARED = serving.SHARED = pathlib.Path(folder)
        tiny("tiny", serving.CONTEXT)
        unittest.main(module="__main__", argv=[sys.argv[0], *rest])
