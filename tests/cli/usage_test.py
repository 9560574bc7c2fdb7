#!/usr/bin/env python3
"""Commands, flags and numbers that are not allowed."""

import re

import program


class UsageTest(program.CliTest):
    def test_version_and_unknown_commands(self):
        self.assertRegex(self.kvasir("--version").text,
                         r"\Akvasir \d+\.\d+\.\d+, numerics contract \d+\n\Z")
        self.refused(2, "no command 'gen'", "gen")
        self.refused(2, "no command", "x" * 100000)

    def test_a_limit_on_file_sizes_is_an_error(self):
        self.refused(1, "large", "logits", "-p", "春", "--out", self.path("l.npy"), file_size=512)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_help_shows_an_example_for_each_command(self):
        listed = self.kvasir("--help").text.partition("Subcommands:\n")[2].partition("\n\n")[0]
        commands = re.findall(r"^  ([a-z]+) +\S", listed, re.MULTILINE)
        self.assertTrue({"next", "generate", "acrostic", "verse", "logits", "eval", "train",
                         "bench", "corpus", "inspect", "tokenize", "detokenize",
                         "verify"} <= set(commands))
        for command in commands:
            self.assertIn(f"kvasir {command}", self.kvasir(command, "--help").text)

    def test_what_no_command_knows(self):
        self.refused(2, "a command is needed")
        self.refused(2, "frobnicate", "frobnicate")
        self.refused(2, "--foo", "generate", "--foo")
        self.refused(2, "FILE", "inspect")
        self.refused(2, "--trials", "verify", "--trials", "many")
        self.refused(2, "nonsense", "bench", "nonsense")
        self.refused(2, "'int3'", "generate", "--kv", "int3")

    def test_a_number_is_the_whole_text(self):
        for text in ("", " 1", "1 ", "+1", "0x1", "1.0", "1e2", "-1", "nan", str(2**64)):
            self.refused(2, f"--seed is '{re.escape(text)}'", "generate", "--seed", text)
            self.refused(2, "--max-tokens is", "generate", "--max-tokens", text)
        self.kvasir("generate", "-n", 1, "--seed", 2**64 - 1)

    def test_numbers_out_of_range(self):
        for flag, values in {
                "--temperature": ("nan", "-1", "inf", "-inf", "1e400", "", "warm"),
                "--top-p": ("0", "2", "-0.5", "nan", "inf"),
                "--min-p": ("-0.1", "1.5", "nan"),
                "--repeat-penalty": ("0", "-1", "nan", "inf"),
                "--top-k": ("-1", "4294967296", "1.5"),
                "--count": ("0", "-1", "99999999999"),
                "--threads": ("0", "1025", "-1"),
                "--block-tokens": ("0", "15", "17", "272"),
                "--prefill-chunk": ("0", "-1")}.items():
            for value in values:
                with self.subTest(flag=flag, value=value):
                    self.refused(2, flag, "generate", "-p", "春", flag, value)

    def test_values_the_model_does_not_fit(self):
        vocab = self.kvasir("inspect", self.model, "--json").json["vocab"]
        self.kvasir("generate", "-n", 1, "--seed", 1, "--top-k", vocab)
        self.refused(2, f"{vocab + 1} .*0 .*{vocab}", "generate", "--top-k", vocab + 1)
        self.refused(2, f"0 to {vocab - 1}", "generate", "--eos", vocab)
        self.kvasir("next", "春", "-k", vocab)
        self.refused(2, str(vocab + 1), "next", "春", "-k", vocab + 1)
        self.refused(2, "0", "next", "春", "-k", 0)
        self.refused(2, f"{vocab}.*0 to {vocab - 1}", "detokenize", vocab)
        self.refused(2, "'x'", "detokenize", "x")


if __name__ == "__main__":
    program.main()
