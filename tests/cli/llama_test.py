#!/usr/bin/env python3
"""A model of the Llama family, by way of every command that runs one."""

import program

# 3 layers, 2 heads of 10 numbers, keys and values, f32.
BYTES_PER_TOKEN = 3 * 2 * 10 * 2 * 4


class LlamaTest(program.CliTest):
    def setUp(self):
        super().setUp()
        self.model = program.SHARED / "grouped.gguf"

    def test_inspect_tells_its_shape(self):
        out = self.kvasir("inspect", self.model, "--json").json
        expected = {"architecture": "llama", "layers": 3, "heads": 4, "kv_heads": 2,
                    "embedding": 32, "context": program.CONTEXT,
                    "cache_bytes_per_token": BYTES_PER_TOKEN}
        self.assertEqual({key: out[key] for key in expected}, expected)
        self.assertIn("blk.2.attn_k.weight", [tensor["name"] for tensor in out["tensors"]])
        plain = self.kvasir("inspect", self.model).out.decode()
        self.assertIn("llama.attention.sliding_window", plain)

    def test_the_cache_never_changes_the_answer(self):
        how = ("-p", "春风花月", "-n", 40, "--temperature", 1.5, "--count", 2)
        expected = self.ids(*how)
        for flags in (["--no-kv-cache"], ["--prefill-chunk=1"], ["--threads=3"],
                      ["--block-tokens=48"]):
            self.assertEqual(self.ids(*how, *flags), expected, flags)

    def test_generate_reports_what_it_holds(self):
        run = self.kvasir("generate", "-p", "春风", "-n", 10, "--seed", 1, "--json")
        self.assertEqual(run.json["cache"]["bytes_per_token"], BYTES_PER_TOKEN)

    def test_verify_asks_the_trainer_too(self):
        out = self.kvasir("verify", "--trials", 3, "--seed", 1, "--json").json
        self.assertEqual(out["mismatches"], 0)
        for axis in ("kv_cache", "prefill_chunk", "batch", "threads", "block", "placement", "simd",
                     "trainer"):
            self.assertGreater(out["axes"][axis]["comparisons"], 0, axis)

    def test_eval_is_the_same_without_a_cache(self):
        text = self.path("text", "春风花月，江山水人。\n" * 12)
        out = self.kvasir("eval", text, "--json").json
        self.assertEqual(self.kvasir("eval", text, "--json", "--no-kv-cache").json, out)


if __name__ == "__main__":
    program.main()
