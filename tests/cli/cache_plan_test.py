#!/usr/bin/env python3
"""cache plan: published figures, the running cache, bad input."""

import program


class CachePlanTest(program.CliTest):
    def plan(self, *arguments):
        return self.kvasir("cache", "plan", "--bandwidth", 20, "--json", *arguments).json

    def test_presets_tell_the_published_bytes(self):
        for preset, f16 in (("gpt2", 36_864), ("gpt3-175b", 4_718_592), ("llama2-7b", 524_288),
                            ("llama2-70b", 327_680), ("llama3-8b", 131_072),
                            ("llama3-70b", 327_680), ("qwen3-8b", 147_456),
                            ("deepseek-v2", 69_120), ("deepseek-v3", 70_272)):
            for dtype, expected in (("", f16), ("f16", f16), ("bf16", f16), ("f32", 2 * f16)):
                flags = ["--dtype", dtype] if dtype else []
                out = self.plan("--preset", preset, *flags)
                self.assertEqual(out["bytes_per_token"], expected, preset)
                self.assertEqual(sum(out["per_layer"]), expected)
                self.assertEqual(len(out["per_layer"]), out["shape"]["layers"])
                self.assertIn(str(expected), out["formula"])
                self.assertEqual(out["bytes_total"],
                                 expected * -(-out["shape"]["context"] // 16) * 16)
        self.assertIn("20 KB", self.plan("--preset", "gpt3-175b")["note"])
        self.assertIn("20 KB", self.kvasir("cache", "plan", "--preset", "gpt3-175b").text)

    def test_sizes_as_flags(self):
        out = self.plan("--layers", 80, "--kv-heads", 8, "--head-dim", 128, "--dtype", "f16",
                        "--context", 4096, "--batch", 3)
        self.assertEqual(out["bytes_per_token"], 327_680)
        self.assertEqual(out["bytes_total"], 3 * 4096 * 327_680)
        self.assertEqual(out["requests"], [{"count": 3, "tokens": 4096}])
        self.assertTrue(out["runs"])
        out = self.plan("--layers", 61, "--latent-dim", 512, "--rope-dim", 64, "--dtype", "f16")
        self.assertEqual(out["bytes_per_token"], 70_272)
        # A preset with fewer heads of keys and values than it has.
        out = self.plan("--preset", "llama2-7b", "--kv-heads", 4)
        self.assertEqual(out["bytes_per_token"], 524_288 // 8)
        self.assertEqual(self.plan("--preset", "deepseek-v3", "--layers", 1)["per_layer"], [1152])

    # To the byte what generate reports, with heads of their own, grouped heads and latents, for one
    # sequence and for forks.
    def test_agrees_with_the_running_cache(self):
        for name in ("tiny", "grouped", "latent"):
            for prompt, tokens, count, block in (("春", 2, 1, 16), ("春风花月", 40, 3, 16),
                                                 ("春" * 20, 24, 4, 32), ("春" * 16, 10, 2, 16),
                                                 ("春风", 45, 1, 256)):
                with self.subTest(model=name, prompt=prompt, count=count):
                    self.agrees(program.SHARED / f"{name}.gguf", prompt, tokens, count, block)

    def agrees(self, model, prompt, tokens, count, block):
        ran = self.kvasir("generate", "-m", model, "-p", prompt, "-n", tokens, "--count", count,
                          "--seed", 1, "--ignore-eos", "--block-tokens", block, "--json").json
        self.assertEqual(ran["usage"]["completion_tokens"], tokens * count)
        prompt_tokens = ran["usage"]["prompt_tokens"]
        # The last token drawn is not computed, so nothing of it is cached.
        shared = ["--shared-prefix", prompt_tokens] if count > 1 else []
        plan = self.plan("-m", model, "--context", prompt_tokens + tokens - 1, "--batch", count,
                         "--block-tokens", block, *shared)
        self.assertTrue(plan["runs"])
        self.assertEqual(plan["bytes_per_token"], ran["cache"]["bytes_per_token"])
        if model.stem == "grouped":  # Its own window frees blocks, which needs --kv to be counted.
            self.assertGreaterEqual(plan["bytes_total"], ran["cache"]["bytes"])
        else:
            self.assertEqual(plan["bytes_total"], ran["cache"]["bytes"])

    def test_the_model_file_is_the_default(self):
        inspected = self.kvasir("inspect", self.model, "--json").json
        for flags in ([], ["-m", self.model]):
            out = self.plan(*flags)
            self.assertEqual(out["bytes_per_token"], inspected["cache_bytes_per_token"])
            self.assertEqual(out["shape"]["context"], program.CONTEXT)

    def test_mixes_sharing_and_memory(self):
        out = self.plan("--requests", "8x512,2x4096,7", "--shared-prefix", 7)
        self.assertEqual(out["requests"], [{"count": 8, "tokens": 512},
                                           {"count": 2, "tokens": 4096},
                                           {"count": 1, "tokens": 7}])
        self.assertEqual((out["sequences"], out["tokens"]), (11, 8 * 512 + 2 * 4096 + 7))
        alone = self.plan("--requests", "8x512")
        shared = self.plan("--requests", "8x512", "--shared-prefix", 500)
        self.assertEqual(shared["bytes_without_sharing"], alone["bytes_total"])
        self.assertEqual(shared["bytes_saved"], 7 * 31 * 16 * alone["bytes_per_token"])
        fit = self.plan("--preset", "llama3-8b", "--memory", "16GiB")["memory"]
        self.assertEqual(fit, {"bytes": 2**34, "times": 16, "longest_context": 131_072})
        self.assertEqual(self.plan("--preset", "llama3-8b", "--memory", "16GiB", "--window", 4096)
                         ["memory"]["longest_context"], None)

    def test_policies_by_formula(self):
        sizes = ("--layers", 4, "--kv-heads", 4, "--head-dim", 32, "--context", 128)
        for flags, per_token, total, runs in (
                (["--dtype", "int8"], 1088, 1088 * 128, True),
                (["--dtype", "int8", "--value-dtype", "int4"], 864, 864 * 128, True),
                (["--dtype", "int4"], 640, 640 * 128, True),
                (["--window", 32, "--sinks", 4], 4096, 4096 * 64, True),
                (["--store", "hidden", "--embedding", 128], 2048, 2048 * 128, True),
                (["--dtype", "int4", "--key-group", 32, "--block-tokens", 32], 640,
                 640 * 128 + 4 * 128 * 32 * 4, True),
                (["--dtype", "int4", "--key-group", 1008], 4 * (4 * 20 + 65),
                 4 * 4 * 20 * 128 + 4 * 128 * 1008 * 4, False)):
            out = self.plan(*sizes, *flags)
            self.assertEqual((out["bytes_per_token"], out["bytes_total"], out["runs"]),
                             (per_token, total, runs), flags)

    def test_policies_by_layer_and_head(self):
        sizes = ("--layers", 4, "--kv-heads", 4, "--head-dim", 32, "--context", 128,
                 "--embedding", 128)
        out = self.plan(*sizes, "--kv", "dtype=int8;1:store=hidden;2.0-1:dtype=int4;0:store=none")
        self.assertEqual(out["per_layer"], [0, 512, 216, 272])
        self.assertEqual((out["bytes_per_token"], out["bytes_total"], out["runs"]),
                         (1000, 128_000, True))
        self.assertEqual(out["policy"], "0:full,dtype=f32,store=none;1:full,dtype=f32,store=hidden;"
                                        "2.0-1:full,dtype=int4;2.2-3:full,dtype=int8;"
                                        "3:full,dtype=int8")
        self.assertEqual(out["tradeoff"], [])
        window = self.plan(*sizes, "--kv", "window=32,sinks=4", "--memory", "1MiB")
        self.assertEqual(window["bytes_total"], 4096 * 64)
        self.assertEqual(window["memory"]["times"], 4)
        self.assertIsNone(window["memory"]["longest_context"])
        self.assertEqual(self.plan("--kv", "full")["bytes_total"], self.plan()["bytes_total"])
        self.assertIn("1 layer × 216", self.kvasir(
            "cache", "plan", *sizes, "--kv", "dtype=int8;2.0-1:dtype=int4").text)
        for pattern, arguments in (
                (r"--kv: window is '0' in 'window=0' at character 11 \(rule 2\)",
                 ["--kv", "dtype=f16;window=0"]),
                (r"--kv: layer '4' at character 1 .* 0 to 3", ["--kv", "4:full"]),
                (r"--dtype beside --kv", ["--dtype", "f16", "--kv", "full"]),
                (r"--store beside --kv", ["--store", "hidden", "--kv", "full"]),
                (r"--shared-prefix is 8, but a window of 9", ["--kv", "1:window=9",
                                                              "--shared-prefix", 8])):
            with self.subTest(arguments=arguments):
                self.refused(2, pattern, "cache", "plan", *sizes, *arguments)

    def test_time_to_read_and_tradeoff(self):
        out = self.plan("--preset", "gpt3-175b")
        self.assertAlmostEqual(out["ms_per_step"], out["bytes_read_per_step"] / 20e6, places=6)
        self.assertEqual({cell["batch"] for cell in out["tradeoff"]}, {1, 8, 32})
        by = {(cell["batch"], cell["tokens"], cell["dtype"]): cell for cell in out["tradeoff"]}
        self.assertEqual(by[8, 2048, "f16"]["bytes"], 8 * out["bytes_total"])
        self.assertEqual(by[8, 2048, "f32"]["bytes"], 16 * out["bytes_total"])
        self.assertAlmostEqual(by[1, 2048, "f16"]["ms_per_step"], out["ms_per_step"])
        measured = self.kvasir("cache", "plan", "--json").json
        self.assertTrue(measured["gb_per_s_measured"])
        self.assertGreater(measured["gb_per_s"], 0.1)
        self.assertIn("GB/s (measured here)", self.kvasir("cache", "plan").text.replace("\n", " "))

    def test_refuses_by_name(self):
        most = 2**64 - 1
        sizes = ("--layers", 4, "--kv-heads", 4, "--head-dim", 32)
        for pattern, arguments in (
                (r"--layers is '0'.*1 to 65536", ["--layers", 0]),
                (r"--layers is '65537'", ["--layers", 65537]),
                (r"--kv-heads is '-1'", [*sizes[:2], "--kv-heads", -1]),
                (r"--head-dim is '1\.5'", [*sizes[:4], "--head-dim", 1.5]),
                (r"--latent-dim is '0'", ["--layers", 4, "--latent-dim", 0]),
                (r"--kv-heads and --head-dim are missing", ["--layers", 4]),
                (r"--head-dim is missing", sizes[:4]),
                (r"--layers is missing", sizes[2:]),
                (r"--latent-dim is 9 beside --kv-heads 4", [*sizes, "--latent-dim", 9]),
                (r"--rope-dim is 8, but there is no --latent-dim", [*sizes, "--rope-dim", 8]),
                (r"gpt5.*gpt2", ["--preset", "gpt5"]),
                (r"--preset gpt2 beside -m", ["--preset", "gpt2", "-m", self.model]),
                (r"int3", [*sizes, "--dtype", "int3"]),
                (r"--window is '0'", [*sizes, "--window", 0]),
                (r"--sinks is 4, but there is no window", [*sizes, "--sinks", 4]),
                (r"--key-group is 24", [*sizes, "--dtype", "int4", "--key-group", 24]),
                (r"--embedding is 0", [*sizes, "--store", "hidden"]),
                (r"not f16", ["--preset", "gpt2", "--store", "hidden", "--dtype", "f16"]),
                (r"nothing", [*sizes, "--store", "nothing"]),
                (r"--context is '0'", [*sizes, "--context", 0]),
                (r"--batch is '0'", [*sizes, "--batch", 0]),
                (r"a length in --requests is '0'", [*sizes, "--requests", "8x0"]),
                (r"the count in --requests is '0'", [*sizes, "--requests", "0x8"]),
                (r"a length in --requests is ''", [*sizes, "--requests", "8x512,"]),
                (r"a length in --requests is 'many'", [*sizes, "--requests", "many"]),
                (r"--requests has more than 1000", [*sizes, "--requests", ",".join(["1"] * 1001)]),
                (r"'8x5' beside --batch", [*sizes, "--requests", "8x5", "--batch", 2]),
                (r"--shared-prefix is 9, .* only 8", [*sizes, "--requests", "8",
                                                      "--shared-prefix", 9]),
                (r"--shared-prefix is 1, but a window of 8", [*sizes, "--window", 8,
                                                              "--shared-prefix", 1]),
                (r"--block-tokens is '1000000000'", [*sizes, "--block-tokens", 10**9]),
                (r"--block-tokens is 17", [*sizes, "--block-tokens", 17]),
                (r"--memory is '16 GiB'", [*sizes, "--memory", "16 GiB"]),
                (r"--memory is '16Gib'", [*sizes, "--memory", "16Gib"]),
                (r"--memory is '0'", [*sizes, "--memory", 0]),
                (r"--memory is '16777216TiB'", [*sizes, "--memory", "16777216TiB"]),
                (r"--bandwidth is '0'", [*sizes, "--bandwidth", 0]),
                (r"2\^64 bytes", [*sizes, "--context", most]),
                (r"2\^64 bytes", [*sizes, "--batch", most]),
                (r"2\^64 bytes", ["--layers", 2, "--kv-heads", most, "--head-dim", most]),
                (r"2\^64 bytes", ["--layers", 2, "--latent-dim", most, "--rope-dim", most])):
            with self.subTest(arguments=arguments):
                self.refused(2, pattern, "cache", "plan", *arguments)
        self.refused(2, "subcommand", "cache")
        self.refused(2, "no 'cache frobnicate'", "cache", "frobnicate")
        self.refused(1, "No such file", "cache", "plan", "-m", self.path("none"))
        self.refused(1, "GGUF", "cache", "plan", "-m", self.path("text", "no model at all" * 9))

    def test_memory_units(self):
        for text, expected in (("1000", 1000), ("3KiB", 3072), ("2MiB", 2**21), ("1TiB", 2**40),
                               ("5kB", 5000), ("5MB", 5 * 10**6), ("7GB", 7 * 10**9),
                               ("1TB", 10**12), (str(2**64 - 1), 2**64 - 1)):
            self.assertEqual(self.plan("--memory", text)["memory"]["bytes"], expected)


if __name__ == "__main__":
    program.main()
