#!/usr/bin/env python3
"""acrostic and verse: every output keeps its form; bad heads and forms are refused."""

import program


class PoemTest(program.CliTest):
    HAN = "[\u3400-\u9fff\U00020000-\U0002ffff]"

    def test_forms_hold_at_any_temperature(self):
        for form, chars in (("wujue", 5), ("qijue", 7)):
            for temperature in (0, 1, 50):
                run = self.kvasir("verse", "--form", form, "--temperature", temperature,
                                  "--seed", 5, "--count", 5, "--json").json
                for choice in run["choices"]:
                    line = f"{self.HAN}{{{chars}}}"
                    self.assertRegex(choice["text"], f"\\A({line}，{line}。){{2}}\\Z")
                    self.assertEqual(choice["finish_reason"], "constraint")

    def test_heads(self):
        for heads in ("春风花月", "龙龘𠀀人"):  # Known to the model, and not.
            for chars in (5, 7):
                text = self.kvasir("acrostic", heads, "--chars", chars, "--seed", 1).text
                lines = text.splitlines()
                self.assertEqual("".join(line[0] for line in lines), heads)
                for line, mark in zip(lines, "，。，。", strict=True):
                    self.assertRegex(line, f"\\A{self.HAN}{{{chars}}}{mark}\\Z")
        verse = self.kvasir("verse", "--form", "qijue", "--heads", "春风花月", "--seed", 1).text
        self.assertEqual(verse[0:32:8], "春风花月")

    def test_heads_of_verse_are_in_the_vocabulary(self):
        for heads, why in (("龘龘龘龘", "head 1 is '龘'"), ("春风𠀀月", "head 3 is '𠀀'"),
                           ("春风花龙", "head 4 is '龙'")):
            for rules in ((), ("--tones", "--rhyme")):
                self.refused(2, why + ".*must be.*vocabulary", "verse", "--form", "qijue",
                             "--heads", heads, "--seed", 1, *rules)
        for command, told in (("verse", "all in the model's vocabulary"),
                              ("acrostic", "lacks is written as its bytes")):
            page = " ".join(self.kvasir(command, "--help").text.split())
            self.assertIn(told, page)

    def test_bad_heads(self):
        for heads, why in (("，", "U\\+FF0C"), ("春。", "head 2"), ("🐉", "U\\+1F409"), ("", "heads"),
                           ("a", "U\\+0061"), ("春 风", "head 2"), ("春\n", "U\\+000A"),
                           (program.INVALID, "UTF-8"), ("〇", "U\\+3007"), ("金\ufe0f", "U\\+FE0F")):
            self.refused(2, why, "acrostic", heads, "--seed", 1)
            self.refused(2, why, "verse", "--form", "wujue", "--heads", heads, "--seed", 1)

    def test_bad_forms(self):
        self.refused(2, "'sonnet'", "verse", "--form", "sonnet")
        self.refused(2, "--form", "verse")
        for chars in ("6", "8", "0", "05", "five", "", program.INVALID):
            self.refused(2, "--chars is '.*': it must be 5 or 7", "acrostic", "春", "--chars", chars)
        self.refused(2, "2 heads.*4 lines", "verse", "--form", "wujue", "--heads", "春风")
        self.refused(2, "48 tokens.*47", "verse", "--form", "wulv", "--seed", 1)
        self.refused(2, "context", "acrostic", "春" * 12, "--seed", 1)
        self.refused(2, "temperature", "verse", "--form", "wujue", "--temperature", "nan")

    def test_best_of_keeps_the_most_probable(self):
        asked = ("verse", "--form", "wujue", "--seed", 3, "--json")
        every = self.kvasir(*asked, "--count", 12).json["choices"]
        best = self.kvasir(*asked, "--count", 3, "--best-of", 4).json
        self.assertEqual(best["settings"]["best_of"], 4)
        self.assertEqual(best["settings"]["count"], 3)
        for group, choice in enumerate(best["choices"]):
            rivals = every[4 * group:4 * group + 4]
            expected = max(rivals, key=lambda rival: rival["logprob"])
            self.assertEqual(choice, expected)
            self.assertAlmostEqual(choice["logprob"], sum(choice["logprobs"]))
        self.refused(2, "40000 poems.*65536", *asked, "--count", 40000, "--best-of", 2)
        self.refused(2, "best-of", *asked, "--best-of", 0)

    def test_the_longest_run_in_a_corpus_is_told(self):
        poem = self.kvasir("verse", "--form", "wujue", "--seed", 4).text.strip()
        corpus = self.path("corpus.txt", "花\n" + poem[2:9] + "\n")
        asked = ("verse", "--form", "wujue", "--seed", 4, "--corpus", corpus)
        self.assertIn(f"7 characters, {poem[2:9]}", self.kvasir(*asked).text)
        run = self.kvasir(*asked, "--json").json["choices"][0]["longest_run"]
        self.assertEqual(run, {"characters": 7, "text": poem[2:9]})
        self.refused(1, "none.txt", *asked[:-1], "none.txt")
        self.refused(1, "not UTF-8 at byte 0", *asked[:-1], self.path("bad.txt", b"\xff"))

    def test_beam_search_draws_nothing(self):
        asked = ("verse", "--form", "wujue", "--rhyme", "--beam", 6)
        document = self.kvasir(*asked, "--count", 6, "--json").json
        self.assertNotIn("cache", document)
        found = document["choices"]
        self.assertEqual(len(found), 6)
        logprobs = [choice["logprob"] for choice in found]
        self.assertEqual(logprobs, sorted(logprobs, reverse=True))
        self.assertEqual(len({choice["text"] for choice in found}), 6)
        other = self.kvasir(*asked, "--no-kv-cache").text.strip()
        self.assertEqual(other, found[0]["text"])
        for flag, value in (("--temperature", 0.8), ("--top-k", 0), ("--top-p", 1), ("--min-p", 0),
                            ("--repeat-penalty", 1), ("--seed", 9)):  # Nothing is drawn.
            self.refused(2, f"--beam.*{flag}|{flag}.*--beam", *asked, flag, value)
            self.refused(2, "--beam", "acrostic", "春风", flag, value, "--beam", 2)
        self.refused(2, "at most 6", *asked, "--count", 7)
        self.refused(2, "--best-of", *asked, "--best-of", 2)
        self.refused(2, "--trace", *asked, "--trace")
        self.refused(2, "beam", "verse", "--form", "wujue", "--beam", 257)

    def test_eval_verse_counts_what_free_samples_keep(self):
        poem = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
        held = self.path("held.txt", poem + "\n" + poem[:12] + "\n\n")
        asked = ("eval", held, "--verse", 5, "--seed", 2, "--corpus", held)
        run = self.kvasir(*asked, "--json").json
        self.assertEqual(run["compared_texts"], 2)
        self.assertEqual(run["free"]["texts"], 5)
        self.assertEqual(run["free"]["form"], 0)  # Random weights.
        self.assertEqual(run["real"], {"texts": 2, "form": 1, "tones": 1, "rhyme": 1, "all": 1,
                                       "distinct2": 16 / 24,
                                       "longest_run": {"characters": 24, "text": poem}})
        self.assertIn("1 (50.0 %)", self.kvasir(*asked).text)
        self.assertNotIn("longest", self.kvasir(*asked[:-2]).text)
        self.refused(2, "--per-token", *asked, "--per-token")
        self.refused(2, "--stride", *asked, "--stride", 3)
        self.refused(1, "no poem", "eval", self.path("blank.txt", "\n\n"), *asked[2:])
        self.refused(1, "UTF-8", "eval", self.path("bad.txt", program.INVALID), *asked[2:])
        self.refused(1, "bad.txt' is not UTF-8", *asked[:-1], self.path("bad.txt"))

    def test_rules_that_contradict_or_cannot_be_kept(self):
        form = ("verse", "--form", "wujue", "--seed", 1)
        for flags, why in ((("--rhyme-group", "东"), "no rhyme was asked"),
                           (("--rhyme", "--rhyme-group", "月"), "no rhyme group.*东冬江"),
                           (("--rhyme", "--rhyme-group", ""), "'' is no rhyme group"),
                           (("--rhyme", "--rhyme-group", "东冬"), "'东冬' is no rhyme group"),
                           (("--rhyme", "--rhyme-group", program.INVALID), "no rhyme group"),
                           (("--tones", "--without", "grammar"), "'grammar'.*opposition"),
                           (("--rhyme", "--without", "rescue"), "'rescue'.*tones"),
                           (("--tones", "--without", "new-words"), "'new-words'.*rhyme"),
                           # tiny.gguf knows few characters.
                           (("--rhyme", "--rhyme-group", "江"), "江 has too few.*1 of the 2")):
            self.refused(2, why, *form, *flags)
        self.refused(2, "head 2, '龘'.*unknown tone", "acrostic", "春龘花月", "--tones")
        self.refused(2, "one line alone", "acrostic", "春", "--rhyme", "--seed", 1)


if __name__ == "__main__":
    program.main()
