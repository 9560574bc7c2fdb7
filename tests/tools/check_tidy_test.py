#!/usr/bin/env python3
"""Feeds tools/check_tidy.py small trees with one fault each, and expects it to be named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_tidy.py"

HEADER = "#ifndef KVASIR_BASE_A_H_\n#define KVASIR_BASE_A_H_\n#endif  // KVASIR_BASE_A_H_\n"
RECORD = "# 0001\n\n## Context\n\n## Decision\n\n## Consequences\n\n## How it is tested\n"
FILES = {
    "src/base/a.h": HEADER,
    "src/base/a.cc": "int a;\n",
    "src/base/a_test.cc": "EXPECT_EQ(1, 1);\n" * 4,
    "docs/adr/0001-first.md": RECORD,
    "dev": "#!/bin/sh\n",
}


class CheckTidyTest(unittest.TestCase):
    def run_tool(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**FILES, **changes}.items():
                if text is None:
                    continue
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
            done = subprocess.run([sys.executable, "-B", str(TOOL), "--root", folder],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def accepted(self, changes):
        status, output = self.run_tool(changes)
        self.assertEqual(status, 0, output)
        return output

    def refused(self, changes, message):
        status, output = self.run_tool(changes)
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)
        self.assertIn("check_tidy: 1 faults", output)

    def test_clean_tree_passes(self):
        self.assertIn("median file", self.accepted({}))

    def test_blanks(self):
        self.refused({"src/base/a.h": HEADER + "\n", "src/base/a.cc": None}, "exactly one newline")
        self.refused({"docs/x.md": "a\n\tb\n"}, "docs/x.md:2: tab")
        self.refused({"docs/x.md": "a \n"}, "docs/x.md:1: trailing blank")
        self.refused({"dev": "a\r\n"}, "dev:1: trailing blank or carriage return")
        self.refused({"docs/x.md": b"\xff\n"}, "docs/x.md: not UTF-8")

    def test_data_of_tests_is_left_alone(self):
        self.accepted({"tests/cli/golden/help.txt": "a \t", "fuzz/corpus/x/run": "a ",
                       "tests/data/x.txt": b"\xff"})

    def test_long_line(self):
        self.refused({"src/base/a.cc": "// " + "x" * 98 + "\n"}, "101 columns")
        self.accepted({"src/base/a.cc": "// http://" + "x" * 98 + "\n"})

    def test_guards(self):
        self.refused({"src/base/a.h": HEADER.replace("#endif  // KVASIR_BASE_A_H_", "#endif")},
                     "header guard must be KVASIR_BASE_A_H_")
        self.refused({"src/base/a.h": HEADER.replace("BASE_A", "A")},
                     "header guard must be KVASIR_BASE_A_H_")
        self.refused({"src/base/a.h": "#pragma once\n"}, "header guard must be KVASIR_BASE_A_H_")

    def test_per_target_guard(self):
        text = "#if defined(KVASIR_{}) == defined(HWY_TARGET_TOGGLE)\n#endif\n"
        self.accepted({"src/base/m-inl.h": text.format("BASE_M_INL_H_")})
        self.refused({"src/base/m-inl.h": text.format("OTHER")}, "per-target guard must be")

    def test_unnumbered_task(self):
        word = "TO" + "DO"
        self.refused({"src/base/a.cc": f"// {word}: later\n"}, f"src/base/a.cc:1: {word} without")
        self.refused({"src/base/a.cc": f"// {word}(me): later\n"}, "without a number")
        self.accepted({"src/base/a.cc": f"// {word}(#12): later\n"})
        self.refused({"include/kvasir/a.h": HEADER.replace("BASE_", "") + "\n"
                      f"// {word}(#12): later\n\n#endif  // KVASIR_A_H_\n"}, "in a public header")

    def test_source_without_test(self):
        self.refused({"src/base/b.cc": "int b;\n"}, "src/base/b.cc:1: no test")
        self.accepted({"src/base/b.cc": "int b;\n", "src/base/b_test.cc": "EXPECT_EQ(1, 1);\n"})
        self.accepted({"src/base/b.cc": "int b;\n",
                       "src/base/a_test.cc": '#include "base/b.h"\n' + "EXPECT_EQ(1, 1);\n" * 4})

    def test_sizes(self):
        lines = "EXPECT_EQ(1, 1);\n"
        self.refused({"src/base/a_test.cc": lines * 1001}, "1001 lines; 1000 are allowed")
        output = self.accepted({"src/base/a_test.cc": lines * 501})
        self.assertIn("note: src/base/a_test.cc has 501 lines", output)
        self.accepted({"src/base/code_table.h":
                       HEADER.replace("_A_", "_CODE_TABLE_").replace("#endif", "// x\n" * 1001 +
                                                                     "#endif"),
                       "src/base/a_test.cc": lines * 900})
        self.refused({"src/base/a_test.cc": lines * 300, "src/base/a.cc": None,
                      "src/base/a.h": None}, "the median file has 300 lines")

    def test_shares(self):
        self.refused({"src/base/a.cc": "int a;\n" * 10}, "src: 4 test lines to 13 source lines")
        self.refused({"src/kvcache/p_test.cc": "EXPECT_EQ(1, 1);\n", "src/kvcache/p.cc": "\n\nx\n"},
                     "src/kvcache: 1 test lines to 3 source lines")

    def test_assertions(self):
        self.refused({"src/base/a_test.cc": "int x;\n" * 100}, "0 assertions in 104 lines")

    def test_machine_path(self):
        self.refused({"docs/x.md": "see /ho" + "me/someone/file\n"}, "docs/x.md:1: path of one")
        self.accepted({"docs/x.md": "https://example.org/home/page and a/work/b\n"})

    def test_records(self):
        self.refused({"docs/adr/0003-third.md": RECORD}, "0003-third.md:1: decision records")
        self.refused({"docs/adr/notes.md": RECORD}, "decision records are numbered")
        self.refused({"docs/adr/0001-first.md": RECORD.replace("## Decision", "## Choice")},
                     "lacks the heading ## Decision")


if __name__ == "__main__":
    unittest.main()
