#!/usr/bin/env python3
"""Model files that are missing, cut short, hostile, or of another kind."""

import random
import re
import struct

import program


class ModelFileTest(program.CliTest):
    RUNS = (("generate", "-n", 1, "--seed", 1), ("next", "春"), ("tokenize", "春"),
            ("verse", "--form", "wujue", "--seed", 1), ("verify", "--trials", 1))

    def test_what_is_no_model(self):
        for path, why in ((self.path("missing.gguf"), "No such file"),
                          (self.path("empty", ""), "empty"),
                          (self.path("text", "春风" * 50), "GGUF|magic"),
                          (self.home, "folder without config.json"),
                          ("/dev/null", "regular file")):
            for run in self.RUNS:
                self.refused(1, why, *run, "-m", path)
            self.refused(1, why, "inspect", path)

    def test_truncated_anywhere(self):
        whole = self.model.read_bytes()
        for size in [*range(1, 64, 9), 500, 5000, *range(9000, len(whole), 20011), len(whole) - 1]:
            path = self.path("cut.gguf", whole[:size])
            self.refused(1, re.escape("cut.gguf"), "generate", "-n", 1, "-m", path)

    def test_hostile_headers(self):
        whole = self.model.read_bytes()
        huge = struct.pack("<Q", 2**63 + 1)
        for name, bad in {
                "magic": b"GGML" + whole[4:],
                "version": whole[:4] + struct.pack("<I", 99) + whole[8:],
                "big-endian": whole[:4] + struct.pack(">I", 3) + whole[8:],
                "tensors": whole[:8] + huge + whole[16:],
                "metadata": whole[:16] + huge + whole[24:],
                "key length": whole[:24] + huge + whole[32:]}.items():
            with self.subTest(name):
                self.refused(1, "bad.gguf", "generate", "-n", 1, "-m", self.path("bad.gguf", bad))

    def test_damaged_headers_never_crash(self):
        whole = bytearray(self.model.read_bytes())
        draw = random.Random(20260711)
        for _ in range(60):
            damaged = bytearray(whole)
            place = draw.randrange(12000)
            damaged[place] = draw.randrange(256)
            path = self.path("damaged.gguf", bytes(damaged))
            run = self.command("generate", "-n", 1, "--seed", 1, "-m", path)
            self.assertIn(run.status, (0, 1, 2), f"byte {place} = {damaged[place]}: {run.err}")
            if run.status:
                self.assertRegex(run.err, r"\Akvasir: error: [^\n]+\n(hint: [^\n]+\n)?\Z")

    def test_another_architecture(self):
        key = b"general.architecture" + struct.pack("<IQ", 8, 4)
        whole = self.model.read_bytes()
        self.assertIn(key + b"gpt2", whole)
        path = self.path("rwkv.gguf", whole.replace(key + b"gpt2", key + b"rwkv"))
        for run in self.RUNS:
            self.refused(1, "rwkv", *run, "-m", path)
        self.assertEqual(self.kvasir("inspect", path, "--json").json["architecture"], "rwkv")

    def test_the_flag_wins_over_the_environment(self):
        run = self.kvasir("tokenize", "春", "--json", "-m", self.model, model="/nothing")
        self.assertEqual(run.json["model"], str(self.model))
        self.refused(1, "/nothing", "tokenize", "春", model="/nothing")


if __name__ == "__main__":
    program.main()
