#!/usr/bin/env python3
"""Feeds readme_commands.py small READMEs around a stand-in program."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "readme_commands.py"
PROGRAM = '#!/bin/sh\necho "kvasir $*" >>ran\n[ "$1" != bad ]\n'


class ReadmeCommandsTest(unittest.TestCase):
    def run_tool(self, readme, *flags):
        """Exit status, output, and the program's calls in order."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "program").write_text(PROGRAM.replace("ran", str(root / "ran")))
            (root / "program").chmod(0o755)
            (root / "poem.txt").write_text("春风\n", encoding="utf-8")
            (root / "README.md").write_text(readme, encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", str(TOOL), "--program",
                                   str(root / "program"), *flags, str(root / "README.md")],
                                  capture_output=True, text=True, check=False)
            ran = root / "ran"
            calls = ran.read_text(encoding="utf-8").splitlines() if ran.exists() else []
            self.assertEqual(sorted(p.name for p in root.iterdir() if p.name != "ran"),
                             ["README.md", "poem.txt", "program"], "the tree was written to")
        return done.returncode, done.stdout + done.stderr, calls

    def test_runs_every_line_of_sh_blocks_in_order(self):
        status, output, calls = self.run_tool(
            "```sh\nbuild/release/kvasir next 春风\nkvasir a \\\n  b  # note\n```\ntext\n"
            "```sh\ncat poem.txt >copy.txt\n```\n```sh\ngrep -q 春 copy.txt\nkvasir c\n```\n")
        self.assertEqual(status, 0, output)
        self.assertEqual(calls, ["kvasir next 春风", "kvasir a b", "kvasir c"])
        self.assertIn("3 blocks run", output)

    def test_console_blocks_run_only_what_follows_the_prompt(self):
        status, output, calls = self.run_tool(
            "```console\n$ kvasir a\nkvasir no\n$ kvasir b \\\n    c\noutput\n```\n")
        self.assertEqual(status, 0, output)
        self.assertEqual(calls, ["kvasir a", "kvasir b c"])

    def test_a_failing_command_fails(self):
        for readme in ("```sh\nkvasir bad\n```\n", "```sh\nkvasir bad\nkvasir a\n```\n",
                       "```console\n$ kvasir bad | cat\n```\n",
                       "```sh\nkvasir nix && missing\n```\n"):
            status, output, _ = self.run_tool(readme)
            self.assertEqual(status, 1, output)
            self.assertIn("README.md:1: exit status", output)
            self.assertIn("1 failed", output)

    def test_flags(self):
        readme = ("```sh\nkvasir a\n```\n```sh norun\nkvasir never\n```\n"
                  "```sh slow\nkvasir long\n```\n```sh fails\nkvasir bad\n```\n")
        status, output, calls = self.run_tool(readme)
        self.assertEqual((status, calls), (0, ["kvasir a", "kvasir bad"]), output)
        _, _, calls = self.run_tool(readme, "--slow")
        self.assertEqual(calls, ["kvasir a", "kvasir long", "kvasir bad"])
        status, output, _ = self.run_tool("```sh fails\nkvasir fine\n```\n")
        self.assertEqual(status, 1, output)

    def test_other_languages_and_installation_are_left_out(self):
        status, output, calls = self.run_tool(
            "```sh\ngit clone https://example.org/x\ncd x\n./dev demo\n```\n"
            "```text\nkvasir t\n```\n"
            "```\nkvasir u\n```\n```sh\n./dev build\nkvasir a\n```\n")
        self.assertEqual((status, calls), (0, ["kvasir a"]), output)
        self.assertIn("1 blocks run", output)

    def test_no_command_at_all_is_a_fault(self):
        self.assertEqual(self.run_tool("# Kvasir\n")[0], 1)

    def test_faults_of_the_document(self):
        for readme, message in (("```sh\nkvasir a\n", "line 1: the block is never closed"),
                                ("```sh later\nkvasir a\n```\n", "unknown word later")):
            status, output, calls = self.run_tool(readme)
            self.assertEqual((status, calls), (1, []))
            self.assertIn(message, output)


if __name__ == "__main__":
    unittest.main()
