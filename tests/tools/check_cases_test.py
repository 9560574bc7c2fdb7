#!/usr/bin/env python3
"""tools/check_cases.py, on the tree as it is and on trees with one fault each."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "check_cases.py"


class CheckCasesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "docs" / "testing.md", self.root / "docs")
        shutil.copytree(ROOT / "tests" / "cases", self.root / "tests" / "cases")
        shutil.copytree(ROOT / "tests" / "cli", self.root / "tests" / "cli")
        for path in (ROOT / "src").rglob("*_test.cc"):
            copy = self.root / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)

    def run_tool(self):
        done = subprocess.run([sys.executable, "-B", TOOL, "--root", self.root], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout

    def refused(self, file, old, new, *expected):
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")
        status, out = self.run_tool()
        self.assertEqual(status, 1)
        for line in expected:
            self.assertIn(line, out)
        path.write_text(text, encoding="utf-8")

    def test_the_tree_as_it_is(self):
        status, out = self.run_tool()
        self.assertEqual((status, out), (0, "check_cases: 78 cases, 0 faults\n"))

    def test_each_fault_is_named(self):
        table = "docs/testing.md"
        self.refused(table, "| C01 |", "| C02 |", "C01: stands 0 times", "C02: is no case")
        self.refused(table, "| C01 |", "| C03 |", "C03: stands 2 times")
        self.refused(table, "`JsonSchema.Arrays`", "soon", "C109: names no test")
        self.refused(table, "`JsonSchema.Arrays`", "`JsonSchema.Array`",
                     "C109: 'JsonSchema.Array': no such test in src")
        self.refused(table, "`cases.sampling c03`, ", "", "C03: test_c03_", "is not in its row")
        self.refused("src/constraints/json_schema_test.cc", "(JsonSchema, Arrays)",
                     "(JsonSchema, Lists)", "C109: 'JsonSchema.Arrays': no such test in src")
        self.refused("tests/cases/streaming_test.py", "def test_c73_", "def test_",
                     "C73: 'cases.streaming c73': no test of C73", "names no case")
        self.refused("tests/cli/generate_test.py", "def test_the_context_ends_a_text",
                     "def test_the_context", "C57:", "no such test in tests/cli")


if __name__ == "__main__":
    unittest.main()
