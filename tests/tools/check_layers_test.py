#!/usr/bin/env python3
"""Feeds tools/check_layers.py small trees with one fault each, and expects it to be named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"

TABLE = """# Architecture

| rank | folder | what lives there | may include | outside headers |
|---|---|---|---|---|
| 0 | `src/base/` | errors | – | fmt, posix |
| 1 | `src/tensor/` | shapes | base | – |
| 2 | `src/model/` | passes | base, tensor | hwy |

More text.
"""
CMAKE = """kvasir_layer(base DEPS fmt::fmt)
kvasir_layer(tensor DEPS kvasir_base)  # kvasir_layer(ghost DEPS x)
kvasir_layer(model DEPS kvasir_tensor)
"""
FILES = {
    "docs/architecture.md": TABLE,
    "CMakeLists.txt": CMAKE,
    "src/base/a.h": "#include <vector>\n#include <fmt/format.h>\n#include <unistd.h>\n",
    "src/tensor/b.h": '#include "base/a.h"\n',
    "src/model/c.cc": '#include "tensor/b.h"\n#include <hwy/highway.h>\n#include "hwy/x.h"\n',
    "src/model/c_test.cc": "#include <gtest/gtest.h>\n#include <sys/stat.h>\n",
    "src/model/c_bench.cc": "#include <benchmark/benchmark.h>\n",
}


class CheckLayersTest(unittest.TestCase):
    def run_tool(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**FILES, **changes}.items():
                if text is None:
                    continue
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", str(TOOL), "--root", folder],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def refused(self, changes, message):
        status, output = self.run_tool(changes)
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)
        self.assertIn("check_layers: 1 problems", output)

    def test_clean_tree_passes(self):
        status, output = self.run_tool({})
        self.assertEqual(status, 0, output)

    def test_upward_include(self):
        self.refused({"src/base/bad.h": '#include <map>\n#include "model/c.h"\n'},
                     "src/base/bad.h:2: model/c.h: base may include only its own files")

    def test_forbidden_include_in_a_test_and_with_odd_spacing(self):
        self.refused({"src/tensor/b_test.cc": ' #  include "model/c.cc"\n'},
                     "src/tensor/b_test.cc:1: model/c.cc: tensor may include only base")

    def test_angle_brackets_do_not_hide_a_folder(self):
        self.refused({"src/tensor/bad.h": "#include <model/c.cc>\n"}, "tensor may include only")

    def test_outside_header(self):
        self.refused({"src/tensor/bad.h": "#include <fmt/format.h>\n"},
                     "fmt/format.h: not among tensor's outside headers (none)")

    def test_posix_only_where_named(self):
        self.refused({"src/tensor/bad.cc": "#include <sys/mman.h>\n"}, "sys/mman.h: not among")

    def test_googletest_only_in_tests(self):
        self.refused({"src/model/bad.cc": "#include <gtest/gtest.h>\n"}, "gtest/gtest.h: not among")

    def test_missing_folder_in_the_include(self):
        self.refused({"src/model/bad.cc": '#include "c.h"\n'}, '"c.h" lacks its folder')

    def test_missing_file(self):
        self.refused({"src/model/bad.cc": '#include "base/gone.h"\n'}, "base/gone.h: no such file")

    def test_unknown_folder(self):
        self.refused({"src/extra/x.h": "\n"}, "src/extra/x.h: folder extra has no row")

    def test_file_outside_any_folder(self):
        self.refused({"src/x.h": "\n"}, "folder src has no row")

    def test_row_without_folder(self):
        self.refused({"src/tensor/b.h": None, "src/model/c.cc": "\n"},
                     "the row tensor has no folder")

    def test_row_that_points_upward(self):
        row = "| 1 | `src/tensor/` | shapes | base | – |"
        upward = row.replace("base", "base, model")
        self.refused({"docs/architecture.md": TABLE.replace(row, upward)},
                     "tensor (rank 1) may not include model (rank 2)")

    def test_row_of_equal_rank(self):
        table = TABLE.replace("| 2 |", "| 1 |")
        self.refused({"docs/architecture.md": table},
                     "model (rank 1) may not include tensor (rank 1)")

    def test_broken_row(self):
        table = TABLE.replace("\n\nMore", "\n| x | junk | a | b | c |\n\nMore")
        self.refused({"docs/architecture.md": table}, "not a row of the layers table")

    def test_no_table(self):
        status, output = self.run_tool({"docs/architecture.md": "nothing\n"})
        self.assertEqual(status, 1)
        self.assertIn("no layers table", output)

    def test_target_that_links_upward(self):
        self.refused({"CMakeLists.txt": CMAKE.replace("fmt::fmt", "kvasir_model")},
                     "CMakeLists.txt: base links model")

    def test_folder_without_target(self):
        self.refused({"CMakeLists.txt": CMAKE.replace("kvasir_layer(base DEPS fmt::fmt)", "")},
                     "CMakeLists.txt: no kvasir_layer(base")


if __name__ == "__main__":
    unittest.main()
