#!/usr/bin/env python3
"""The manual and the completions of a program whose --help is known."""

import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "program_pages.py"

PROGRAM = r"""#!/bin/sh
case "$*" in
  --version) echo 'kvasir 1.2.3, numerics contract 1' ;;
  --help) cat <<'T'
Trains models, and it's quick.
Usage: kvasir [OPTIONS] [SUBCOMMAND]

Options:
  -h,--help                   Print this help message and exit

Subcommands:
  say                         Say a text
  cache                       Of caches

Each command has its own --help. Example:
  kvasir say hello
T
  ;;
  'say --help') cat <<'T'
Say a text
Usage: kvasir say [OPTIONS] TEXT

Positionals:
  TEXT TEXT REQUIRED          the text

Options:
  -h,--help                   Print this help message and exit
  -m,--model FILE             model [GGUF]: a file
  --a-very-long-name-of-an-option stop|roll:{stop,roll}
                              what to do; default: 'stop'

Example:
  kvasir say -m x.gguf .hello
T
  ;;
  'cache --help') printf 'Of caches\nUsage: kvasir cache [OPTIONS] SUBCOMMAND\n\nOptions:\n'
    printf '  -h,--help                   Print this help message and exit\n\nSubcommands:\n'
    printf '  plan                        Plan one\n' ;;
  'cache plan --help') printf 'Plan one\nUsage: kvasir cache plan [OPTIONS]\n\nOptions:\n'
    printf '  --preset NAME               a known model\n' ;;
  *) exit 1 ;;
esac
"""


class ProgramPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        top = pathlib.Path(folder.name)
        program = top / "kvasir"
        program.write_text(PROGRAM, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        subprocess.run([sys.executable, "-B", TOOL, "--program", program, "--out", top / "out"],
                       check=True)
        cls.manual, cls.bash, cls.zsh = (
            (top / "out" / name).read_text(encoding="utf-8")
            for name in ("kvasir.1", "kvasir.bash", "_kvasir"))
        cls.bash_file = top / "out" / "kvasir.bash"

    def test_the_manual_holds_every_command_and_option(self):
        self.assertTrue(self.manual.startswith('.TH KVASIR 1 "" "kvasir 1.2.3"'))
        for part in ("Trains models, and it's quick.", ".SS kvasir say\nSay a text",
                     ".SS kvasir cache plan",
                     "\\fB\\-m\\fR, \\fB\\-\\-model\\fR \\fIFILE\\fR\nmodel [GGUF]: a file",
                     "\\fIstop|roll\\fR\nwhat to do; default: 'stop'",
                     "kvasir say \\-m x.gguf .hello", "\\fBTEXT\\fR \\fITEXT\\fR\nthe text"):
            self.assertIn(part, self.manual)
        self.assertNotIn(".SS kvasir cache\n", self.manual)

    def complete(self, *words):
        script = (f"source {self.bash_file}; COMP_WORDS=({' '.join(words)}); "
                  f"COMP_CWORD={len(words) - 1}; _kvasir; echo \"${{COMPREPLY[@]}}\"")
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True,
                              check=True).stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("kvasir", "''"), ["say", "cache", "-h", "--help"])
        self.assertEqual(self.complete("kvasir", "s"), ["say"])
        self.assertEqual(self.complete("kvasir", "say", "--mo"), ["--model"])
        self.assertEqual(self.complete("kvasir", "cache", "p"), ["plan"])
        self.assertEqual(self.complete("kvasir", "cache", "plan", "--p"), ["--preset"])
        self.assertEqual(self.complete("kvasir", "say", "--a-very-long-name-of-an-option", "r"),
                         ["roll"])
        self.assertEqual(self.complete("kvasir", "say", "-m", "x"), [])  # A file: bash's own.

    def test_zsh_is_told_the_same(self):
        self.assertTrue(self.zsh.startswith("#compdef kvasir\n"))
        for part in ("'(-m --model)'{-m,--model}'[model \\[GGUF\\]\\: a file]:FILE:_files'",
                     "(stop roll)", "'say:Say a text'", "_kvasir_cache_plan() {"):
            self.assertIn(part, self.zsh)


if __name__ == "__main__":
    unittest.main()
