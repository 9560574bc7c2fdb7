#!/usr/bin/env python3
"""generate --trace --json, and the pictures that tools/draw_block_tables.py makes of it."""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import program

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "draw_block_tables.py"
SVG = "{http://www.w3.org/2000/svg}"


class BlockTablesTest(program.CliTest):
    def trace_of(self, *arguments):
        return self.kvasir("generate", "--seed", 1, "--ignore-eos", "--trace", "--json",
                           *arguments).json

    def draw(self, document, *arguments):
        out = self.path("out.svg")
        done = subprocess.run([sys.executable, "-B", TOOL, self.path("run", json.dumps(document)),
                               "--out", out, *map(str, arguments)], stderr=subprocess.PIPE,
                              text=True, check=False)
        return done, pathlib.Path(out)

    def test_the_trace_is_the_state_after_each_step(self):
        out = self.trace_of("-p", "春" * 20, "-n", 20, "--count", 3)
        self.assertEqual([step["step"] for step in out["trace"]],
                         list(range(1, len(out["trace"]) + 1)))
        for step in out["trace"]:
            blocks = set()
            for table in step["tables"]:
                self.assertEqual(len(table["blocks"]), -(-table["length"] // 16))
                self.assertEqual(len(set(table["blocks"])), len(table["blocks"]))
                blocks |= set(table["blocks"])
            self.assertEqual(step["held_bytes"],
                             len(blocks) * 16 * out["cache"]["bytes_per_token"])
        last = out["trace"][-1]["tables"]
        self.assertEqual([table["index"] for table in last], [0, 1, 2])
        self.assertEqual(len({table["blocks"][0] for table in last}), 1)  # The prompt's.
        self.assertEqual(len({table["blocks"][1] for table in last}), 3)  # Copied on write.
        self.assertNotIn("trace", self.kvasir("generate", "--seed", 1, "-n", 2, "--json").json)

    def test_every_block_of_every_table_is_drawn(self):
        out = self.trace_of("-p", "春" * 20, "-n", 20, "--count", 3)
        done, path = self.draw(out, "--step", 1, len(out["trace"]), "--title", "a < b")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        root = xml.etree.ElementTree.parse(path).getroot()
        texts = [element.text for element in root.iter(SVG + "text")]
        self.assertIn("a < b", texts)
        for step in (out["trace"][0], out["trace"][-1]):
            for table in step["tables"]:
                for block in table["blocks"]:
                    self.assertIn(f"block {block}", texts)
        drawn = sum(1 for text in texts if text.startswith("block "))
        self.assertEqual(drawn, sum(len(table["blocks"]) for step in
                                    (out["trace"][0], out["trace"][-1])
                                    for table in step["tables"]))
        shared = out["trace"][-1]["tables"][0]["blocks"][0]
        self.assertIn(f"{shared} (×3)", texts)
        _, _, width, height = map(float, root.get("viewBox").split())
        for box in root.iter(SVG + "rect"):
            if box.get("x"):
                self.assertLessEqual(float(box.get("x")) + float(box.get("width")), width)
                self.assertLessEqual(float(box.get("y")) + float(box.get("height")), height)

    def test_refuses_what_is_no_trace(self):
        document = self.kvasir("generate", "--seed", 1, "-n", 2, "--json").json
        done, path = self.draw(document)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--trace --json", done.stderr)
        self.assertFalse(path.exists())
        done, _ = self.draw(self.trace_of("-n", 2), "--step", 3)
        self.assertIn("step 3 is not in the trace: 1 to 2", done.stderr)
        done = subprocess.run([sys.executable, "-B", TOOL, self.path("bad", "{"), "--out", "x"],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    program.main()
