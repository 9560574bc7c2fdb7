#!/usr/bin/env python3
"""generate: documents, streams, many at once, with and without the cache, bad prompts."""

import json

import program


class GenerateTest(program.CliTest):
    def test_document(self):
        run = self.kvasir("generate", "-p", "春风", "-n", 6, "--seed", 42, "--count", 2, "--json")
        out = run.json
        self.assertEqual(list(out)[:6], ["model", "seed", "settings", "choices", "usage", "timing"])
        self.assertEqual((out["seed"], out["settings"]["temperature"]), (42, 0.8))
        self.assertEqual(out["usage"], {"prompt_tokens": 2, "completion_tokens": 12,
                                        "cached_tokens": out["usage"]["cached_tokens"]})
        self.assertLessEqual({"prefill_ms", "decode_ms", "tokens_per_s"}, set(out["timing"]))
        self.assertEqual(out["cache"]["bytes_per_token"], 2 * 2 * 32 * 4)
        self.assertLessEqual({"bytes", "policy"}, set(out["cache"]))
        for choice in out["choices"]:
            self.assertEqual(choice["finish_reason"], "length")
            self.assertEqual(len(choice["token_ids"]), 6)
            self.assertEqual(len(choice["logprobs"]), 6)
            self.assertTrue(all(x <= 0 for x in choice["logprobs"]))
            back = self.kvasir("detokenize", *choice["token_ids"], "--json").json["text"]
            self.assertEqual(back, choice["text"])

    def test_plain_text_is_the_continuation(self):
        arguments = ("generate", "-p", "春风", "-n", 6, "--seed", 42)
        text = self.kvasir(*arguments, "--json").json["choices"][0]["text"]
        self.assertEqual(self.kvasir(*arguments).text, text + "\n")
        self.assertEqual(self.kvasir(*arguments, "--echo").text, f"春风{text}\n")
        self.assertEqual(self.kvasir(*arguments, "--stream").text, text + "\n")

    def test_stream_has_a_line_a_token(self):
        arguments = ("generate", "-p", "春", "-n", 5, "--seed", 3, "--json")
        lines = [json.loads(line) for line in
                 self.kvasir(*arguments, "--stream").text.splitlines()]
        whole = self.kvasir(*arguments).json["choices"][0]
        self.assertEqual([line["id"] for line in lines], whole["token_ids"])
        self.assertEqual("".join(line["text"] for line in lines), whole["text"])
        self.assertEqual([line["finish_reason"] for line in lines], [None] * 4 + ["length"])
        self.refused(2, "--stream", "generate", "--stream", "--count", 2, "--seed", 1)

    def test_the_cache_changes_nothing(self):
        prompt = ("-p", "春风花月江山水人天云日夜雨白青流霜一", "-n", 24)
        expected = self.ids(*prompt)
        self.assertEqual(len(expected[0]), 24)
        for flags in (["--no-kv-cache"], *([f"--prefill-chunk={n}"] for n in (1, 7, 18, 4096)),
                      *([f"--block-tokens={n}"] for n in (32, 256)),
                      *([f"--threads={n}"] for n in (1, 3)), ["--kv", "full,dtype=f32"],
                      ["--no-kv-cache", "--prefill-chunk=5", "--threads=2"]):
            self.assertEqual(self.ids(*prompt, *flags), expected, flags)

    def test_count_is_the_single_runs(self):
        three = self.ids("-p", "春", "-n", 8, "--count", 3)
        self.assertEqual(self.ids("-p", "春", "-n", 8), three[:1])
        self.assertEqual(self.ids("-p", "春", "-n", 8, "--count", 2), three[:2])
        self.assertEqual(len({tuple(ids) for ids in three}), 3)

    def test_many_prompts_are_the_single_runs(self):
        prompts = [{"prompt": "春风", "seed": 1}, {"prompt": "花"},
                   {"prompt": "", "max_tokens": 3, "temperature": 0},
                   {"prompt": "江山水人天云日夜", "top_k": 5, "top_p": 0.9, "stop": ["。"]}]
        lines = "\n".join(json.dumps(prompt, ensure_ascii=False) for prompt in prompts)
        path = self.path("prompts.jsonl", "\n" + lines + "\n\n")
        together = self.ids("--prompts-file", path, "-n", 9)
        singles = [("-p", "春风", "-n", 9, "--seed", 1), ("-p", "花", "-n", 9),
                   ("-n", 3, "--temperature", 0),
                   ("-p", "江山水人天云日夜", "-n", 9, "--top-k", 5, "--top-p", 0.9, "--stop", "。")]
        for ids, single in zip(together, singles, strict=True):
            arguments = single if "--seed" in single else (*single, "--seed", 7)
            alone = self.kvasir("generate", "--json", *arguments).json["choices"][0]
            self.assertEqual(ids, alone["token_ids"], single)
        text = self.kvasir("generate", "--prompts-file", path, "-n", 2, "--seed", 7).text
        self.assertEqual(text.count("---\n"), 3)

    def test_prompts_share_what_they_have_in_common(self):
        common = "春风花月江山水人天云日夜雨白青流霜一"  # 18 tokens: one block and a part.
        texts = [common + end for end in ("春", "花", "月")]
        path = self.path("prompts.jsonl", "\n".join(
            json.dumps({"prompt": text}, ensure_ascii=False) for text in texts))
        out = self.kvasir("generate", "--prompts-file", path, "-n", 9, "--seed", 7, "--json").json
        self.assertEqual(out["usage"]["cached_tokens"], 2 * 18)  # Of texts that run, to the token.
        self.assertGreaterEqual(out["cache"]["shared_bytes"], 16 * 512)
        self.assertGreaterEqual(out["cache"]["saved_bytes"], 2 * 16 * 512)
        self.assertGreaterEqual(out["cache"]["idle_bytes"], 16 * 512)
        for text, choice in zip(texts, out["choices"], strict=True):
            self.assertEqual([choice["token_ids"]],
                             self.ids("-p", text, "-n", 9, "--no-kv-cache"))
        eight = self.kvasir("generate", "-p", common, "-n", 5, "--count", 8, "--seed", 1,
                            "--json").json
        self.assertGreaterEqual(eight["cache"]["saved_bytes"], 7 * 16 * 512)

    def test_best_of_keeps_the_most_probable_by_token(self):
        arguments = ("generate", "-p", "春风", "-n", 9, "--seed", 7, "--stop", "。", "--json")
        everything = self.kvasir(*arguments, "--count", 6).json["choices"]

        def best(choices):
            return max(choices, key=lambda choice: sum(choice["logprobs"]) /
                       len(choice["logprobs"]))
        out = self.kvasir(*arguments, "--best-of", 3, "--count", 2).json
        self.assertEqual(out["choices"], [best(everything[:3]), best(everything[3:])])
        self.assertEqual(out["settings"]["best_of"], 3)
        self.assertEqual(out["settings"]["count"], 2)
        self.assertEqual(self.kvasir(*arguments, "--best-of", 6).json["choices"],
                         [best(everything)])
        self.refused(2, "40000 texts as the best of 2", *arguments, "--best-of", 2,
                     "--count", 40000)
        self.refused(2, "--best-of.*--stream", *arguments, "--best-of", 2, "--stream")

    def test_a_budget_changes_nothing_but_the_wait(self):
        arguments = ("-p", "春风花月江山水人天云日夜雨白青流霜", "-n", 24, "--count", 5)
        expected = self.ids(*arguments)
        for budget in ("24576", "32KiB", "64kB", "1GiB"):  # Three blocks are the least.
            self.assertEqual(self.ids(*arguments, "--kv-budget", budget), expected, budget)
        out = self.kvasir("generate", *arguments, "--kv-budget", "32KiB", "--seed", 7,
                          "--json").json
        self.assertLessEqual(out["cache"]["bytes"], 32768)
        self.assertGreater(out["cache"]["preemptions"], 0)
        self.assertEqual(out["settings"]["kv_budget"], 32768)
        self.refused(2, "--kv-budget.*16384 bytes holds 32 positions.*40.*24576 bytes",
                     "generate", *arguments, "--kv-budget", "16KiB")
        # The last token is never computed: 17 + 16 tokens are 32 positions.
        self.assertEqual(self.ids(*arguments[:2], "-n", 16, "--kv-budget", "16KiB"),
                         self.ids(*arguments[:2], "-n", 16))
        self.refused(2, "--kv-budget.*needs? 33", "generate", *arguments[:2], "-n", 17,
                     "--kv-budget", "16KiB")
        path = self.path("prompts.jsonl", '{"prompt":"春"}\n{"prompt":"春","max_tokens":40}')
        self.refused(2, "--kv-budget.*line 2.*needs? 40", "generate", "--prompts-file", path,
                     "-n", 9, "--kv-budget", "16KiB")
        self.refused(2, "--kv-budget.*budget is 8191 bytes.*one block of 8192", "generate",
                     "--kv-budget", "8191")
        for bad in ("0", "-1", "x", "1KB5", "99999999999999999999GiB", ""):
            self.refused(2, "--kv-budget", "generate", "--seed", 1, f"--kv-budget={bad}")

    def test_faults_of_a_prompts_file(self):
        for content, why in (("", "no prompt"), ("{}", "line 1.*prompt"), ("春风", "line 1.*JSON"),
                             ('{"prompt":1}', "must be a text"), ("[]", "object"),
                             ('{"prompt":"春"}\n{"prompt":"春","seed":-1}', "line 2.*seed"),
                             ('{"prompt":"春","temprature":1}', "temprature"),
                             ('{"prompt":"春","temperature":"hot"}', "temperature"),
                             (b'{"prompt":"\xff"}', "line 1"),
                             ('{"prompt":"春"}\n{"prompt":"春","temperature":-1}',
                              "line 2.*temperature"),
                             ('{"prompt":"春","top_k":1000000}', "line 1.*top-k"),
                             ('{"prompt":"春","stop":""}', "line 1.*stop"),
                             ('{"prompt":"' + "春" * 49 + '"}', "49")):
            run = self.command("generate", "--seed", 1, "--prompts-file", self.path("p", content))
            self.assertIn(run.status, (1, 2), content)
            self.assertRegex(run.err, r"\Akvasir: error: [^\n]+\n(hint: [^\n]+\n)?\Z", content)
            self.assertRegex(run.err, why)
        self.refused(1, "No such file", "generate", "--prompts-file", self.path("none"))
        self.refused(2, "--prompt", "generate", "-p", "春", "--prompt-file", self.path("p", "春"))

    def test_prompts(self):
        start = self.kvasir("generate", "-n", 4, "--seed", 1, "--json").json
        self.assertEqual(start["usage"]["prompt_tokens"], 1)  # A newline.
        for arguments in (("-p", ""), ("--prompt-file", self.path("empty", ""))):
            same = self.kvasir("generate", *arguments, "-n", 4, "--seed", 1, "--json").json
            self.assertEqual(same["choices"], start["choices"])
        path = self.path("prompt", "春风\n")
        self.assertEqual(self.ids("--prompt-file", path, "-n", 5), self.ids("-p", "春风", "-n", 5))
        unknown = self.kvasir("generate", "-p", "人工智能🐉", "-n", 3, "--seed", 1, "--json").json
        self.assertEqual(unknown["usage"]["prompt_tokens"], 1 + 3 * 3 + 4)  # Only 人 is known.

    def test_bad_prompts(self):
        self.refused(2, "UTF-8.*0xE6", "generate", "-p", program.INVALID)
        self.refused(1, "UTF-8.*0xE6", "generate", "--prompt-file",
                     self.path("bad", program.INVALID))
        self.refused(2, "UTF-8", "next", program.INVALID)
        self.refused(2, "UTF-8", "tokenize", program.INVALID)
        self.refused(2, "UTF-8", "logits", "-p", program.INVALID, "--out", self.path("x.npy"))
        too_long = "春" * (program.CONTEXT + 1)
        self.refused(2, "49.*48", "generate", "-p", too_long, "--seed", 1)
        self.refused(2, "49.*48", "next", too_long)
        self.refused(2, "49.*48", "logits", "-p", too_long, "--out", self.path("x.npy"))
        self.assertFalse((self.home / "x.npy").exists())

    def test_the_context_ends_a_text(self):
        run = self.kvasir("generate", "-p", "春" * 40, "-n", 1000, "--seed", 1, "--json").json
        self.assertEqual(run["choices"][0]["finish_reason"], "length")
        self.assertIn(len(run["choices"][0]["token_ids"]), (8, 9))

    def test_no_token_asked_for(self):
        self.refused(2, "--max-tokens.*'0'.*from 1", "generate", "-p", "春", "-n", 0)
        path = self.path("prompts.jsonl", '{"prompt":"春","max_tokens":0}')
        self.refused(1, "line 1.*max_tokens.*from 1", "generate", "--prompts-file", path)

    def test_log_probabilities_of_the_prompt(self):
        run = self.kvasir("generate", "-p", "春风花", "-n", 2, "--echo", "--logprobs", 2,
                          "--seed", 1, "--json").json
        [scored] = run["prompt_logprobs"]
        self.assertEqual([token["token"] for token in scored], ["风", "花"])
        for text, token in (("春", scored[0]), ("春风", scored[1])):
            top = self.kvasir("next", text, "-k", 2, "--json").json["results"][0]["top"]
            self.assertEqual([(t["id"], t["logprob"]) for t in token["top"]],
                             [(t["id"], t["logprob"]) for t in top])
        off = self.kvasir("generate", "-p", "春风花", "-n", 2, "--echo", "--logprobs", 2,
                          "--seed", 1, "--json", "--no-kv-cache").json
        self.assertEqual(off["prompt_logprobs"], run["prompt_logprobs"])
        lines = self.kvasir("generate", "-p", "春风花", "-n", 2, "--echo", "--logprobs", 2,
                            "--seed", 1).text.splitlines()
        self.assertEqual([line.split()[0] for line in lines if "%" in line][:2], ["风", "花"])
        unasked = self.kvasir("generate", "-p", "春风花", "-n", 2, "--logprobs", 2, "--seed", 1,
                              "--json").json
        self.assertNotIn("prompt_logprobs", unasked)

    def test_turns(self):
        """Each turn is the run of the whole text so far."""
        settings = ("-n", 5, "--seed", 7, "--threads", 1)

        def more(text):
            return self.kvasir("generate", "-p", text, *settings).text[:-1]
        first = "春风" + more("春风")
        second = first + more(first)
        third = second + "花" + more(second + "花")
        other = "山" + more("山")
        typed = "春风\n\n花\n/text\n/new\n山\n/text\n/quit\n水\n"
        run = self.kvasir("generate", "-i", *settings, typed=typed)
        turns = [first[2:], second[len(first):], third[len(second) + 1:], third, other[1:], other]
        self.assertEqual(run.text, "".join(turn + "\n" for turn in turns))
        self.assertEqual(run.err, "")
        # The end of the input ends it as well; a first text can be given.
        run = self.kvasir("generate", "-i", "-p", "春", *settings, typed="风")
        self.assertEqual(run.text, first[2:] + "\n")

    def test_a_turn_that_fails_changes_nothing(self):
        settings = ("-n", 5, "--seed", 7, "--threads", 1)
        typed = "春风\n" + "花" * 60 + "\n/text\n"
        run = self.kvasir("generate", "-i", *settings, typed=typed)
        text = self.kvasir("generate", "-p", "春风", *settings).text
        self.assertEqual(run.text, text + "春风" + text)
        self.assertRegex(run.err, r"\Akvasir: error: [^\n]*67[^\n]*48[^\n]*\n\Z")
        for flags in (("--json",), ("--count", 2), ("--prompts-file", "x"), ("--trace",)):
            self.refused(2, "-i continues one text", "generate", "-i", *flags)

    def test_stops_bans_and_seeds(self):
        self.assertNotEqual(self.ids("-p", "春", "-n", 9), self.ids("-p", "春", "-n", 9, seed=8))
        whole = self.kvasir("generate", "-p", "春", "-n", 20, "--seed", 7).text
        stop = whole[5:7]
        run = self.kvasir("generate", "-p", "春", "-n", 20, "--seed", 7, "--stop", stop,
                          "--json").json
        self.assertEqual(run["choices"][0]["text"], whole[:whole.index(stop)])
        self.assertEqual(run["choices"][0]["finish_reason"], "stop")
        banned = whole[0]
        text = self.kvasir("generate", "-p", "春", "-n", 40, "--seed", 7, "--ban", banned).text
        self.assertNotIn(banned, text)
        self.refused(2, "--ban", "generate", "--ban", "")
        self.refused(2, "stop", "generate", "--stop", "", "--seed", 1)
        run = self.kvasir("generate", "-n", 2)
        self.assertRegex(run.err, r"\Aseed \d+\n\Z")
        seed = run.err.split()[1]
        self.assertEqual(self.kvasir("generate", "-n", 2, "--seed", seed).text, run.text)

    def test_logprobs_and_trace(self):
        run = self.kvasir("generate", "-p", "春", "-n", 3, "--seed", 1, "--logprobs", 2, "--trace",
                          "--temperature", 0, "--json")
        for token in run.json["choices"][0]["tokens"]:
            self.assertEqual(len(token["top"]), 2)
            self.assertGreaterEqual(token["top"][0]["logprob"], token["top"][1]["logprob"])
        self.assertEqual(len([x for x in run.err.splitlines() if not x.startswith("#")]), 3)


if __name__ == "__main__":
    program.main()
