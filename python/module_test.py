#!/usr/bin/env python3
"""The Python module beside the program: the same texts, tokens and bits.

usage: module_test.py [--package FOLDER] --program KVASIR

Without --package, the module that is installed is tested.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--package")
ARGS.add_argument("--program", required=True)
OPTIONS, REST = ARGS.parse_known_args()
if OPTIONS.package:
    sys.path.insert(0, OPTIONS.package)

import numpy  # noqa: E402

import kvasir  # noqa: E402


def program(*args):
    return subprocess.run([OPTIONS.program, *args], capture_output=True, check=True).stdout


class ModuleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = kvasir.load()

    def test_generates_what_the_program_generates(self):
        said = json.loads(program("generate", "-p", "春", "-n", "40", "--seed", "1", "--json"))
        choice = said["choices"][0]
        for model in (self.model, kvasir.load(cache=False, threads=1),
                      kvasir.load(block_tokens=64, prefill_chunk=1)):
            made = model.generate("春", max_tokens=40, seed=1)
            self.assertEqual(made, choice["text"])
            self.assertEqual(made.token_ids, choice["token_ids"])
            self.assertEqual(made.logprobs, choice["logprobs"])
            self.assertEqual(made.finish_reason, "length")
            self.assertEqual(made.seed, 1)

    def test_logits_have_the_programs_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "l.npy"))
            program("logits", "-p", "大漠孤烟直，", "--out", path)
            theirs = numpy.load(path)
        ours = self.model.logits("大漠孤烟直，")
        self.assertEqual(ours.dtype, numpy.float32)
        self.assertEqual(ours.shape, theirs.shape)
        self.assertEqual(ours.tobytes(), theirs.tobytes())
        self.assertEqual(self.model.logits("大漠孤烟直，", last=True).tobytes(),
                         theirs[-1].tobytes())
        ids = self.model.tokenize("大漠孤烟直，")
        self.assertEqual(self.model.logits(ids).tobytes(), theirs.tobytes())

    def test_the_next_tokens_are_the_programs(self):
        said = json.loads(program("next", "春风", "-k", "5", "--json"))["results"][0]["top"]
        for ours, theirs in zip(self.model.next("春风", 5), said, strict=True):
            self.assertEqual((ours.token, ours.id, ours.logprob),
                             (theirs["token"], theirs["id"], theirs["logprob"]))
            self.assertAlmostEqual(ours.prob, theirs["prob"])

    def test_losses_are_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.txt")
            path.write_text("白日依山尽，黄河入海流。", encoding="utf-8")
            said = json.loads(program("eval", str(path), "--json"))
        ours = self.model.evaluate("白日依山尽，黄河入海流。")
        self.assertEqual((ours.tokens, ours.nll, ours.perplexity),
                         (said["tokens"], said["nll"], said["perplexity"]))
        self.assertEqual(len(ours.token_nll), ours.tokens)

    def test_many_and_their_constraints(self):
        made = self.model.generate("春", count=3, seed=2, max_tokens=8, top_logprobs=2)
        self.assertEqual(len(made), 3)
        self.assertEqual(len(made[0].top[0]), 2)
        self.assertEqual(made[0], self.model.generate("春", seed=2, max_tokens=8))
        self.assertRegex(self.model.generate("春", regex=r"\d{3}"), r"^\d{3}$")
        self.assertIn(self.model.generate("春", choices=["ja", "nein"]), ("ja", "nein"))
        self.assertIn(self.model.generate("", json_schema={"type": "boolean"}, compact_json=True),
                      ("true", "false"))
        self.assertEqual(self.model.generate("", grammar='root ::= "ja"'), "ja")

    def test_a_callback_sees_all_and_may_end_it(self):
        seen = []
        whole = self.model.generate("春", seed=1,
                                    on_token=lambda *event: seen.append(event))
        self.assertEqual("".join(event[3] for event in seen), whole)
        cut = self.model.generate("春", seed=1, on_token=lambda *event: False)
        self.assertEqual((cut.finish_reason, len(cut.token_ids)), ("cancelled", 1))
        with self.assertRaises(ZeroDivisionError):
            self.model.generate("春", on_token=lambda *event: 1 // 0)
        self.assertEqual(self.model.generate("春", seed=1), whole)

    def test_threads_take_turns(self):
        expected = [str(self.model.generate("春", seed=i)) for i in range(4)]
        got = [None] * 4

        def work(i):
            got[i] = str(self.model.generate("春", seed=i))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, expected)

    def test_what_is_wrong_is_told(self):
        for call, message in (
                (lambda: kvasir.load("no/such/file"), "no/such/file"),
                (lambda: kvasir.load(policy="nonsense"), "nonsense"),
                (lambda: self.model.generate("春", temperature=-1.0), "-1"),
                (lambda: self.model.generate("春", regex="("), "("),
                (lambda: self.model.generate("春", regex="a", choices=["a"]), "only one"),
                (lambda: self.model.detokenize([2**32 - 1]), "4294967295"),
                (lambda: self.model.logits([]), "token")):
            with self.assertRaises(kvasir.Error) as caught:
                call()
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "temprature"):
            self.model.generate("春", temprature=1)
        self.assertIn("gpt2", repr(self.model))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *REST])
