#!/usr/bin/env python3
"""The official openai client for Node drives the server: tests/npm/openai_client.mjs.

It needs Node and the packages of tests/npm/package.json in build/npm (KVASIR_NPM names another
folder), which `./dev nightly` installs; without them the test says so and is skipped.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import serving

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = pathlib.Path(os.environ.get("KVASIR_NPM", ROOT / "build" / "npm"))
KEY = "a-key-for-the-test-alone"


class OpenAiClientTest(unittest.TestCase):
    def test_every_check(self):
        keys = serving.SHARED / "keys.txt"
        keys.write_text(f"# the test's\n{KEY}\n", encoding="ascii")
        with serving.Served("--api-key-file", keys) as server:
            done = subprocess.run(
                ["node", ROOT / "tests" / "npm" / "openai_client.mjs", server.url + "/v1", KEY,
                 server.model], cwd=FOLDER, check=False, timeout=240, capture_output=True)
            print(done.stdout.decode())
            self.assertEqual(done.returncode, 0, done.stderr.decode())


if __name__ == "__main__":
    if not shutil.which("node") or not (FOLDER / "node_modules" / "openai").is_dir():
        print(f"skipped: node, or {FOLDER}/node_modules/openai, is not there")
        sys.exit(77)
    serving.main()
