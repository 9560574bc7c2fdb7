#!/usr/bin/env python3
"""next, tokenize, detokenize, inspect, eval, logits, diff, verify, bench."""

import pathlib

import program


class TextToolsTest(program.CliTest):
    def test_next(self):
        out = self.kvasir("next", "春风", "花", "-k", 3, "--json").json
        self.assertEqual([result["text"] for result in out["results"]], ["春风", "花"])
        for result in out["results"]:
            probabilities = [top["prob"] for top in result["top"]]
            self.assertEqual(len(probabilities), 3)
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertEqual(set(result["top"][0]), {"token", "id", "prob", "logprob"})
        single = self.kvasir("next", "花", "-k", 3, "--json").json["results"][0]
        self.assertEqual(single, out["results"][1])

    def test_tokens_round_trip(self):
        for text in ("春风，花月。", "", " a b ", "人工智能🐉", "▁", "-"):
            out = self.kvasir("tokenize", "--json", "--", text).json
            self.assertEqual(out["text"], text)
            self.assertEqual(len(out["tokens"]), len(out["token_ids"]))
            if text:
                back = self.kvasir("detokenize", "--json", "--", *out["token_ids"]).json
                self.assertEqual(back["text"], text)
        ids = self.kvasir("tokenize", "春风").text
        self.assertEqual(self.kvasir("detokenize", ids.strip().replace(" ", ",")).text, "春风\n")

    def test_inspect(self):
        out = self.kvasir("inspect", self.model, "--json").json
        expected = {"architecture": "gpt2", "layers": 2, "heads": 2, "kv_heads": 2, "embedding": 32,
                    "context": program.CONTEXT, "cache_bytes_per_token": 512}
        self.assertEqual({key: out[key] for key in expected}, expected)
        count = 0
        for tensor in out["tensors"]:
            self.assertLessEqual({"name", "shape", "dtype"}, set(tensor))
            size = 1
            for extent in tensor["shape"]:
                size *= extent
            count += size
        self.assertEqual(count, out["parameters"])
        self.assertIn("gpt2", self.kvasir("inspect", self.model).text)

    def test_eval(self):
        text = self.path("text", "春风花月，江山水人。\n" * 20)
        out = self.kvasir("eval", text, "--json").json
        self.assertEqual(out["tokens"], 11 * 20 - 1)
        self.assertAlmostEqual(out["perplexity"], 2.718281828459045 ** out["nll"], places=6)
        self.assertLessEqual({"model", "bits_per_char"}, set(out))
        for flags in (["--no-kv-cache"], ["--prefill-chunk=7"], ["--threads=1"]):
            self.assertEqual(self.kvasir("eval", text, "--json", *flags).json, out, flags)
        tokens = self.kvasir("eval", text, "--json", "--per-token").json["per_token"]
        self.assertEqual(len(tokens), out["tokens"])
        self.assertAlmostEqual(sum(token["nll"] for token in tokens) / len(tokens), out["nll"])

    def test_eval_refuses(self):
        for content, why in (("", "empty"), ("春", "at least 2"),
                             ("春风".encode() + program.INVALID, "UTF-8")):
            self.refused(1, why, "eval", self.path("text", content))
        self.refused(1, "No such file", "eval", self.path("none"))
        self.refused(2, "--stride", "eval", self.path("text", "春风"), "--stride", 0)

    def test_logits_and_diff(self):
        a, b, c = (self.path(name) for name in ("a.npy", "b.npy", "c.npy"))
        out = self.kvasir("logits", "-p", "春风花", "--out", a, "--json").json
        self.kvasir("logits", "-p", "春风花", "--out", b, "--no-kv-cache", "--prefill-chunk", 2)
        self.kvasir("logits", "-p", "春风月", "--out", c)
        self.assertEqual(pathlib.Path(a).read_bytes(), pathlib.Path(b).read_bytes())
        vocab = self.kvasir("inspect", self.model, "--json").json["vocab"]
        self.assertEqual(out["shape"], [3, vocab])
        equal = self.kvasir("diff", a, b, "--json").json
        self.assertEqual((equal["equal"], equal["differing"], equal["ulp_max"]), (True, 0, 0))
        different = self.command("diff", a, c, "--json")
        self.assertEqual((different.status, different.err), (1, ""))
        self.assertEqual(different.json["first"][0], 2)  # The first two rows are the same.
        self.kvasir("logits", "-p", "春", "--out", c)
        self.refused(1, "shapes differ", "diff", a, c)
        self.refused(1, "No such file", "diff", a, self.path("none"))
        self.refused(1, "empty", "diff", a, self.path("empty", ""))

    def test_verify(self):
        out = self.kvasir("verify", "--trials", 2, "--seed", 3, "--json").json
        self.assertEqual((out["contract"], out["trials"], out["mismatches"]), (1, 2, 0))
        self.assertGreater(out["comparisons"], 0)
        for axis in ("kv_cache", "prefill_chunk", "batch", "threads", "block", "placement",
                     "prefix", "restore", "simd", "trainer"):
            self.assertEqual(set(out["axes"][axis]), {"comparisons", "mismatches"})
        counts = [axis["comparisons"] for axis in out["axes"].values()]
        self.assertEqual(sum(counts), out["comparisons"])

    def test_bench(self):
        for kind in ("decode", "prefill", "batch", "cache", "train"):
            out = self.kvasir("bench", kind, "--layers", 1, "--heads", 2, "--dim", 16, "--vocab",
                              50, "--context", 24, "--repetitions", 1, "--json").json
            self.assertEqual((out["bench"], out["threads"]), (kind, 1))
            self.assertTrue(out["rows"])
        self.refused(2, "tokens", "bench", "decode", "--tokens", 999, "--repetitions", 1)

    def test_bench_attention(self):
        out = self.kvasir("bench", "attention", "--layers", 2, "--heads", 4, "--dim", 32,
                          "--kv-heads", 2, "--vocab", 50, "--tokens", "8,40", "--repetitions", 2,
                          "--json").json
        bytes_per_token = {row["attention"]: row["cache_bytes_per_token"] for row in out["rows"]}
        self.assertEqual(bytes_per_token, {"MHA 4": 2 * 4 * 8 * 2 * 4, "GQA 2": 2 * 2 * 8 * 2 * 4,
                                           "MQA 1": 2 * 1 * 8 * 2 * 4, "MLA 32+4": 2 * 36 * 4})
        self.assertEqual([row["tokens"] for row in out["rows"]], [8] * 4 + [40] * 4)
        for heads, dim in ((32, 32), (4, 20), (1, 130), (1, 2)):
            self.refused(2, f"--dim {dim} over --heads {heads} are {dim // heads} channels",
                         "bench", "attention", "--heads", heads, "--dim", dim)
        self.refused(2, "--dim 33 is not a multiple of --heads 4", "bench", "attention", "--heads",
                     4, "--dim", 33)
        for kv_heads in (3, 4, 8):
            self.refused(2, f"--kv-heads is {kv_heads}; .*--heads 4, below it", "bench",
                         "attention", "--heads", 4, "--dim", 32, "--kv-heads", kv_heads)
        shape = ("--arch", "llama", "--layers", 1, "--dim", 32, "--vocab", 50, "--repetitions", 1)
        self.kvasir("bench", "decode", *shape, "--kv-heads", 2, "--json")
        self.refused(2, "--kv-heads is 3", "bench", "decode", *shape, "--kv-heads", 3)
        trained = self.kvasir("bench", "train", *shape, "--kv-heads", 2, "--context", 16,
                              "--sequences", 2, "--json").json
        self.assertEqual([row["tokens"] for row in trained["rows"]], [32])

    def test_bench_takes_no_flag_in_vain(self):
        given = {"--model": "no.gguf", "--arch": "gpt2", "--context": 64, "--sequences": 2,
                 "--plot": "p.svg", "--quick": None, "--tokens": 8, "--heads": 2}
        vain = {"attention": ("--model", "--arch", "--context", "--sequences", "--plot",
                              "--quick"),
                "decode": ("--sequences", "--plot", "--quick"),
                "prefill": ("--sequences", "--plot", "--quick"), "batch": ("--plot", "--quick"),
                "train": ("--tokens", "--plot", "--quick"),
                "masks": ("--arch", "--context", "--sequences", "--plot", "--tokens", "--heads")}
        for kind, flags in vain.items():
            for flag in flags:
                value = () if given[flag] is None else (given[flag],)
                self.refused(2, f"{flag} is no flag of bench {kind}", "bench", kind, flag, *value)
        self.refused(2, "--kv-heads needs --arch llama", "bench", "decode", "--kv-heads", 2)
        self.refused(2, "--dim is the shape of random weights; 'no.gguf' has its own", "bench",
                     "decode", "-m", "no.gguf", "--dim", 64)


if __name__ == "__main__":
    program.main()
