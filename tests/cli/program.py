"""What the tests of the program share: running it, and what a refusal must look like.

Each *_test.py here: --program KVASIR --tiny-model TINY_MODEL [unittest's arguments]
"""

import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = SHARED = None  # The program, and the folder of the models; set before the tests run.
CONTEXT = 48  # Of tiny.gguf (gpt2), grouped.gguf (llama) and latent.gguf (deepseek2).
INVALID = b"\xe6\x98\xff"  # Two bytes of a character, then one that begins none.


class Run:
    def __init__(self, done):
        self.status = done.returncode
        self.out, self.err = done.stdout, done.stderr.decode()

    @property
    def text(self):
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)


def limit_file_size(size):
    """A disk that takes `size` bytes a file: what a full one does, without the right to mount."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # The write fails instead.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.model = SHARED / "tiny.gguf"

    def path(self, name, content=None):
        path = self.home / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def environment(self, model=None):
        kept = {key: value for key, value in os.environ.items() if key != "KVASIR_MODEL"}
        return {**kept, "KVASIR_MODEL": str(model or self.model)}

    def command(self, *arguments, model=None, stdout=subprocess.PIPE, file_size=None, typed=""):
        """Runs it; `typed` is what its standard input holds."""
        arguments = self.one_thread(list(arguments))
        preparation = {} if file_size is None else {
            "preexec_fn": limit_file_size(file_size), "restore_signals": False}
        return Run(subprocess.run([PROGRAM, *map(os.fsencode, map(self.plain, arguments))],
                                  input=typed.encode(), stdout=stdout, stderr=subprocess.PIPE,
                                  env=self.environment(model), cwd=self.home, timeout=60,
                                  check=False, **preparation))

    @staticmethod
    def one_thread(arguments):
        """With --threads 1 unless the test asks for others: steps of tiny models are too short to
        share among threads on a busy machine."""
        threaded = ("next", "generate", "acrostic", "verse", "logits", "eval", "train")
        if arguments[:1] and arguments[0] in threaded and "--help" not in arguments and not any(
                str(argument).startswith("--threads") for argument in arguments):
            arguments[1:1] = ["--threads", "1"]
        return arguments

    @staticmethod
    def plain(argument):
        return argument if isinstance(argument, (str, bytes)) else str(argument)

    def kvasir(self, *arguments, **how):
        """A run that must succeed."""
        run = self.command(*arguments, **how)
        self.assertEqual(run.status, 0, f"{arguments}: {run.err}")
        return run

    def refused(self, status, pattern, *arguments, **how):
        """A run that must end with this status and one line that says why (and perhaps a hint)."""
        run = self.command(*arguments, **how)
        self.assertEqual(run.status, status, f"{arguments}: {run.err}")
        self.assertRegex(run.err, r"\Akvasir: error: [^\n]+\n(hint: [^\n]+\n)?\Z", arguments)
        self.assertRegex(run.err.splitlines()[0], pattern, arguments)
        if run.out is not None:
            self.assertEqual(run.out, b"", arguments)
        return run

    def ids(self, *arguments, seed=7):
        run = self.kvasir("generate", "--json", "--seed", seed, *arguments)
        return [choice["token_ids"] for choice in run.json["choices"]]


def main():
    global PROGRAM, SHARED  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tiny-model", required=True)
    flags, rest = parser.parse_known_args()
    PROGRAM = os.path.abspath(flags.program)
    with tempfile.TemporaryDirectory() as folder:
        SHARED = pathlib.Path(folder)
        for name, architecture in (("tiny", "gpt2"), ("grouped", "llama"),
                                   ("latent", "deepseek2")):
            subprocess.run([os.path.abspath(flags.tiny_model), SHARED / f"{name}.gguf",
                            str(CONTEXT), "", architecture], check=True)
        unittest.main(argv=[sys.argv[0], *rest])
