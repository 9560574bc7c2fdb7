#!/usr/bin/env python3
"""bench cache: what its document and its picture hold; never how long anything took."""

import pathlib
import xml.etree.ElementTree

import program

SHAPE = ("--layers", 1, "--heads", 2, "--dim", 16, "--vocab", 50, "--repetitions", 1)
SVG = "{http://www.w3.org/2000/svg}"


class BenchCacheTest(program.CliTest):
    def test_growth_paging_and_index(self):
        plot = self.path("plot.svg")
        out = self.kvasir("bench", "cache", *SHAPE, "--quick", "--plot", plot, "--json").json
        self.assertTrue(out["checked"])
        self.assertEqual([row["tokens"] for row in out["rows"]], [32, 64, 120])
        self.assertEqual([timing["batch"] for timing in out["timing"]], [1, 8])
        for timing in out["timing"]:
            self.assertEqual([cell["tokens"] for cell in timing["lengths"]],
                             [32, 64, 128, 256, 512])
            for cell in timing["lengths"]:
                self.assertGreater(cell["step_ms_with"], 0)
                self.assertGreaterEqual(cell["text_ms_with"], cell["step_ms_with"])
            self.assertEqual(set(timing["step_with"]), {"a", "b", "r_squared"})
            self.assertLessEqual(timing["step_with"]["r_squared"], 1)
        self.assertEqual([(row["tokens"], row["block_tokens"]) for row in out["paging"]],
                         [(512, size) for size in (512, 16, 32, 64, 128, 256)])
        self.assertEqual(out["paging"][0]["ratio"], 1)
        for name in ("hash", "find", "insert"):
            self.assertGreater(out["index"][f"{name}_ns_per_token"], 0)
        root = xml.etree.ElementTree.parse(plot).getroot()
        texts = [element.text for element in root.iter(SVG + "text")]
        for wanted in ("batch 1, with the cache", "batch 8, without", "tokens so far, n"):
            self.assertIn(wanted, texts)

    def test_sizes_as_asked(self):
        out = self.kvasir("bench", "cache", *SHAPE, "--tokens", "40,8,200", "--sequences", 3,
                          "--json").json
        self.assertEqual(out["timing_context"], 200)
        self.assertEqual([timing["batch"] for timing in out["timing"]], [3])
        self.assertEqual([cell["tokens"] for cell in out["timing"][0]["lengths"]], [8, 40, 200])
        text = self.kvasir("bench", "cache", *SHAPE, "--tokens", "8,16,32", "--sequences", 1).text
        for wanted in ("Fitted, in ms", "R²", "Blocks against one block", "Prefix index"):
            self.assertIn(wanted, text)

    def test_refuses(self):
        self.refused(2, "41 tokens .* 1 to 40", "bench", "cache", *SHAPE, "--context", 40,
                     "--tokens", "41")
        self.refused(2, "--sequences", "bench", "cache", *SHAPE, "--sequences", 0)
        missing = pathlib.Path(self.home, "none", "plot.svg")
        self.refused(1, "none/plot.svg", "bench", "cache", *SHAPE, "--tokens", "8", "--plot",
                     missing)


if __name__ == "__main__":
    program.main()
