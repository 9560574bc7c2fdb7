#!/usr/bin/env python3
"""Outputs that take no more: a full disk, a reader that left."""

import os
import pathlib

import program


class FullDiskTest(program.CliTest):
    def test_standard_output(self):
        text = self.path("text", "春风花月")
        for arguments in (("--help",), ("generate", "-n", 2, "--seed", 1), ("next", "春", "--json"),
                          ("generate", "-n", 2, "--seed", 1, "--stream"), ("inspect", self.model),
                          ("verse", "--form", "wujue", "--seed", 1), ("eval", text)):
            with open("/dev/full", "wb") as full:
                self.refused(1, "No space left on device", *arguments, stdout=full)

    def test_a_reader_that_left(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            self.refused(1, "Broken pipe", "generate", "-n", 2, "--seed", 1, stdout=pipe)

    def test_files_stay_whole(self):
        old = b"what was there before"
        out = self.path("logits.npy", old)
        self.refused(1, "logits.npy", "logits", "-p", "春风花月", "--out", out, file_size=1000)
        self.assertEqual(pathlib.Path(out).read_bytes(), old)
        self.assertEqual(os.listdir(self.home), ["logits.npy"])
        self.refused(1, "No space left", "logits", "-p", "春", "--out", "/dev/full")
        self.refused(1, "No such file", "logits", "-p", "春", "--out", self.path("no/x.npy"))


if __name__ == "__main__":
    program.main()
