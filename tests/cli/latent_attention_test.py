#!/usr/bin/env python3
"""A model with multi-head latent attention, by way of every command that runs one."""

import program

# 3 layers, a latent of 24 numbers and a rotated key of 8, f32.
BYTES_PER_TOKEN = 3 * (24 + 8) * 4


class LatentAttentionTest(program.CliTest):
    def setUp(self):
        super().setUp()
        self.model = program.SHARED / "latent.gguf"

    def test_inspect_tells_the_cache(self):
        out = self.kvasir("inspect", self.model, "--json").json
        expected = {"architecture": "deepseek2", "layers": 3, "heads": 2, "embedding": 32,
                    "context": program.CONTEXT, "cache_bytes_per_token": BYTES_PER_TOKEN}
        self.assertEqual({key: out[key] for key in expected}, expected)

    def test_the_cache_never_changes_the_answer(self):
        how = ("-p", "春风花月", "-n", 40, "--temperature", 1.5, "--count", 2)
        expected = self.ids(*how)
        for flags in (["--no-kv-cache"], ["--prefill-chunk=1"], ["--threads=3"],
                      ["--block-tokens=48"]):
            self.assertEqual(self.ids(*how, *flags), expected, flags)

    def test_generate_reports_what_it_holds(self):
        run = self.kvasir("generate", "-p", "春风", "-n", 10, "--seed", 1, "--json")
        self.assertEqual(run.json["cache"]["bytes_per_token"], BYTES_PER_TOKEN)
        self.assertEqual(run.json["cache"]["bytes"] % (16 * BYTES_PER_TOKEN), 0)

    def test_verify(self):
        out = self.kvasir("verify", "--trials", 3, "--seed", 1, "--json").json
        self.assertEqual(out["mismatches"], 0)
        for axis in ("kv_cache", "prefill_chunk", "batch", "threads", "block", "placement"):
            self.assertGreater(out["axes"][axis]["comparisons"], 0, axis)

    def test_eval_is_the_same_without_a_cache(self):
        text = self.path("text", "春风花月，江山水人。\n" * 12)
        out = self.kvasir("eval", text, "--json").json
        self.assertEqual(self.kvasir("eval", text, "--json", "--no-kv-cache").json, out)


if __name__ == "__main__":
    program.main()
