#!/usr/bin/env python3
"""The page at GET /: its files as the server hands them out, and in a headless browser.

The browser needs Node, playwright-core in build/npm (KVASIR_NPM names another folder) and Debian's
chromium, which `./dev nightly` installs; without them that test says so and is skipped. Screenshots
go to the folder `playground` beside the program.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "server"))
import serving  # noqa: E402  pylint: disable=wrong-import-position

FOLDER = pathlib.Path(os.environ.get("KVASIR_NPM", ROOT / "build" / "npm"))
MODEL = ROOT / "models" / "tang-lesson.gguf"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
MAX_BYTES = 64 * 1024
NAMESPACE = "http://www.w3.org/2000/svg"  # A name, which nothing asks for.


class PlaygroundTest(unittest.TestCase):
    def test_every_file_is_served(self):
        files = sorted((ROOT / "web").iterdir())
        self.assertIn("index.html", [file.name for file in files])
        with serving.Served() as server:
            for file in files:
                path = "/" if file.name == "index.html" else f"/{file.name}"
                status, headers, body = server.ask(path)
                self.assertEqual((path, status), (path, 200))
                self.assertEqual(headers["Content-Type"], TYPES[file.suffix])
                self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(body, file.read_bytes(), f"{path} is not what web/ holds")
            self.assertEqual(server.ask("/index.htm")[0], 404)

    def test_the_page_is_small_and_asks_nobody_else(self):
        files = sorted((ROOT / "web").iterdir())
        self.assertLess(sum(file.stat().st_size for file in files), MAX_BYTES)
        for file in files:
            text = file.read_text(encoding="utf-8").replace(NAMESPACE, "")
            self.assertNotRegex(text, r"(?i)\b(https?|wss?):|[\"'(]//|@import", file.name)
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
                self.assertNotIn(word, text, file.name)
            self.assertNotRegex(text, r"\sstyle=|\son\w+=\"", file.name)  # The policy forbids them.

    def test_every_language_says_everything(self):
        text = (ROOT / "web" / "i18n.js").read_text(encoding="utf-8")
        languages = len(re.search(r"LANGUAGES = \[(.*)\]", text)[1].split(","))
        self.assertEqual(languages, 3)
        entries = re.findall(r"^  (\w+): \[(.*?)\],$", text, flags=re.MULTILINE | re.DOTALL)
        self.assertGreater(len(entries), 80)
        for name, entry in entries:
            joined = re.sub(r'" \+\n\s*"', "", entry)
            self.assertEqual(len(re.findall(r'"(?:[^"\\]|\\.)+"', joined)), languages, name)

    def test_in_a_browser(self):
        chromium = shutil.which("chromium")
        if not shutil.which("node") or not (FOLDER / "node_modules" / "playwright-core").is_dir():
            self.skipTest(f"node, or {FOLDER}/node_modules/playwright-core, is not there")
        if not chromium:
            self.skipTest("chromium is not there")
        shots = pathlib.Path(serving.PROGRAM).parent / "playground"
        shots.mkdir(exist_ok=True)
        with serving.Served("--no-access-log", model=MODEL) as server:
            done = subprocess.run(
                ["node", ROOT / "tests" / "browser" / "playground_test.mjs", server.url, shots,
                 chromium], cwd=FOLDER, check=False, timeout=900, capture_output=True)
        print(done.stdout.decode())
        self.assertEqual(done.returncode, 0, done.stderr.decode())


if __name__ == "__main__":
    serving.main()
