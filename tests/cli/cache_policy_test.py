#!/usr/bin/env python3
"""--kv of the commands that run a model, and cache compare."""

import xml.etree.ElementTree

import program

SPECS = ("full", "dtype=int8", "k=int4,group=16,v=int4,rotate", "window=9,sinks=2,dtype=f16",
         "store=hidden", "store=none", "dtype=int8;1:dtype=int4;0.1:window=5")
EXACT = ("full", "store=hidden", "store=none")
TEXT = "春风花月江山水人天云日夜雨白青流霜一" * 6


class CachePolicyTest(program.CliTest):
    def test_generate_is_the_same_however_the_work_is_cut(self):
        prompt = ("-p", "春风花月江山水人天云日夜雨白青流霜一", "-n", 24)
        full = self.ids(*prompt)
        for spec in SPECS:
            expected = self.ids(*prompt, "--kv", spec)
            if spec in EXACT:
                self.assertEqual(expected, full, spec)
            for flags in (["--no-kv-cache"], ["--prefill-chunk=1"], ["--prefill-chunk=7"],
                          ["--block-tokens=64"], ["--threads=3"]):
                self.assertEqual(self.ids(*prompt, "--kv", spec, *flags), expected, (spec, flags))

    def test_logits_of_exact_policies_are_those_of_the_full_cache(self):
        def digest(*flags):
            return self.kvasir("logits", "-p", TEXT[:40], "--out", self.path("out.npy"), "--json",
                               *flags).json["xxh3_128"]
        full = digest()
        for spec in SPECS:
            here = digest("--kv", spec)
            self.assertEqual(here == full, spec in EXACT, spec)
            self.assertEqual(digest("--kv", spec, "--no-kv-cache", "--prefill-chunk", 5), here)

    def test_reports_name_the_policy(self):
        def policy(*flags):
            return self.kvasir("generate", "-p", "春", "-n", 3, "--seed", 1, "--json",
                               *flags).json["cache"]["policy"]
        self.assertEqual(policy(), "full,dtype=f32")
        self.assertEqual(policy("--kv", "k=f16,v=f16"), "full,dtype=f16")
        self.assertEqual(policy("--no-kv-cache"), "off")

    def test_eval_and_next_take_a_policy(self):
        text = self.path("text.txt", TEXT)
        full = self.kvasir("eval", text, "--json").json
        self.assertEqual(self.kvasir("eval", text, "--json", "--kv", "store=hidden").json, full)
        self.assertNotEqual(self.kvasir("eval", text, "--json", "--kv", "window=2").json["nll"],
                            full["nll"])
        one = self.kvasir("next", TEXT[:20], "--json", "--kv", "window=1").json
        self.assertNotEqual(one, self.kvasir("next", TEXT[:20], "--json").json)

    def test_verify_and_bench_take_a_policy(self):
        out = self.kvasir("verify", "--trials", 1, "--seed", 3, "--json",
                          "--kv", "window=9,dtype=int8").json
        self.assertEqual((out["policy"], out["mismatches"]), ("window=9,dtype=int8", 0))
        self.assertFalse(out["axes"]["trainer"]["applicable"])
        for kind in ("decode", "prefill", "batch"):
            run = self.kvasir("bench", kind, "-m", self.model, "--tokens", 8, "--repetitions", 1,
                              "--kv", "dtype=f16", "--json")
            self.assertEqual(run.json["policy"], "full,dtype=f16")
        self.refused(2, "--kv is no flag of bench train", "bench", "train", "--kv", "full")
        self.refused(2, "--kv: layer '9'", "bench", "decode", "--kv", "9:full")

    def test_refuses_by_setting_and_place(self):
        text = self.path("text.txt", TEXT)
        for pattern, spec in ((r"--kv: window is '0' in 'window=0' at character 13 \(rule 2\)",
                               "dtype=f16;1:window=0"),
                              (r"--kv: layer '9' at character 1 \(rule 1\)", "9:full"),
                              (r"head '7' at character 3", "0.7:full"),
                              (r"sinks=4.*more than 'window=3'.*at most 3", "window=3,sinks=4"),
                              (r"group is '0'", "k=int4,group=0"),
                              (r"'cache=off'.* is not a setting", "cache=off"),
                              (r"cache policy is empty", "")):
            for command in (("eval", text), ("generate", "-p", "春"), ("next", "春")):
                with self.subTest(spec=spec, command=command[0]):
                    self.refused(2, pattern, *command, "--kv", spec)
        self.refused(2, "--kv", "demo", "--kv", "full")


class CacheCompareTest(program.CliTest):
    def compare(self, *arguments):
        return self.kvasir("cache", "compare", *arguments, "--threads", 1, "--json")

    def test_lists_what_was_asked_in_that_order(self):
        text = self.path("text.txt", TEXT)
        specs = ["store=hidden", "dtype=int8", "full", "window=24,sinks=4", "dtype=int8"]
        out = self.compare(text, "--policies", "|".join(specs)).json
        rows = out["policies"]
        self.assertEqual([row["policy"] for row in rows], specs)
        full = rows[2]
        evaluated = self.kvasir("eval", text, "--json").json
        self.assertEqual(full["perplexity"], evaluated["perplexity"])
        self.assertEqual(out["tokens"], evaluated["tokens"])
        inspected = self.kvasir("inspect", self.model, "--json").json
        self.assertEqual(full["bytes_per_token"], inspected["cache_bytes_per_token"])
        for row in (rows[0], full):
            self.assertEqual((row["perplexity_change"], row["kl_mean"], row["kl_p99"],
                              row["top1"]), (0, 0, 0, 1))
        self.assertEqual({key: value for key, value in rows[1].items() if "tokens_per" not in key},
                         {key: value for key, value in rows[4].items() if "tokens_per" not in key})
        for row in rows:
            self.assertTrue(row["off_equals_on"])
            self.assertGreater(row["tokens_per_s_start"], 0)
            self.assertGreater(row["tokens_per_s_end"], 0)
            self.assertAlmostEqual(row["perplexity_change"],
                                   100 * (row["perplexity"] / full["perplexity"] - 1), places=9)
        self.assertLess(rows[3]["bytes_per_token_512"], rows[3]["bytes_per_token_128"])
        for row in rows[1], rows[3]:
            self.assertGreater(row["kl_mean"], 0)
            self.assertGreaterEqual(row["kl_p99"], row["kl_mean"])

    def test_the_default_list_a_table_and_a_picture(self):
        text = self.path("text.txt", TEXT)
        plot = self.path("policies.svg")
        for model in ("tiny", "grouped"):
            run = self.kvasir("cache", "compare", text, "--plot", plot, "--threads", 1,
                              "-m", program.SHARED / f"{model}.gguf")
            for name in ("full", "dtype=f16", "dtype=bf16", "dtype=int8", "dtype=int4",
                         "k=int4,group=32,v=int8", "dtype=int4,rotate", "window=24,sinks=4",
                         "store=hidden", "store=none"):
                self.assertRegex(run.text, rf"(?m)^{name}  .*% .* yes$")
            root = xml.etree.ElementTree.parse(plot).getroot()
            words = ["".join(element.itertext()) for element in root.iter()]
            self.assertIn("dtype=int4,rotate", words)
        latent = self.compare(text, "-m", program.SHARED / "latent.gguf").json
        self.assertEqual([row["policy"] for row in latent["policies"]], ["full"])

    def test_search_keeps_to_the_budget(self):
        text = self.path("text.txt", TEXT)
        full = self.compare(text, "--policies", "full").json["policies"][0]["bytes_per_token"]
        for budget, per_token in ((f"{int(full * 0.4)}/token", full * 0.4),
                                  (str(int(full * 48 * 0.6)), full * 0.6)):
            out = self.compare(text, "--policies", "full|dtype=int4", "--search", budget).json
            found = out["policies"][-1]
            self.assertEqual(len(out["policies"]), 3)
            self.assertEqual(found["policy"], out["search"]["policy"])
            self.assertLessEqual(found["bytes_per_token"], per_token)
            self.assertLess(out["tokens"], len(TEXT) - out["search"]["calibration_tokens"])
            self.assertIn("found:", self.kvasir("cache", "compare", text, "--threads", 1,
                                                "--policies", "full", "--search", budget).text)

    def test_refuses_by_name(self):
        text = self.path("text.txt", TEXT)
        for pattern, arguments in (
                (r"policy 2 of --policies: .*dtype is 'int3'", ["--policies", "full|dtype=int3"]),
                (r"policy 2 of --policies: the cache policy is empty", ["--policies", "full|"]),
                (r"--search is 'many'", ["--search", "many"]),
                (r"budget of 5 bytes is too small", ["--search", "5"]),
                (r"--kv", ["--kv", "full"])):
            with self.subTest(arguments=arguments):
                self.refused(2, pattern, "cache", "compare", text, *arguments)
        self.refused(1, "too few tokens: 1", "cache", "compare", self.path("one.txt", "春"))
        self.refused(1, "UTF-8", "cache", "compare", self.path("bad.txt", program.INVALID))
        self.refused(1, "missing.txt", "cache", "compare", "missing.txt")
        self.refused(2, "cache plan or cache compare", "cache", "guess")


if __name__ == "__main__":
    program.main()
