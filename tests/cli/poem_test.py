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
            verse = self.kvasir("verse", "--form", "qijue", "--heads", heads, "--seed", 1).text
            self.assertEqual(verse[0:32:8], heads)

    def test_bad_heads(self):
        for heads, why in (("，", "U\\+FF0C"), ("春。", "head 2"), ("🐉", "U\\+1F409"), ("", "heads"),
                           ("a", "U\\+0061"), ("春 风", "head 2"), ("春\n", "U\\+000A"),
                           (program.INVALID, "UTF-8"), ("〇", "U\\+3007"), ("金\ufe0f", "U\\+FE0F")):
            self.refused(2, why, "acrostic", heads, "--seed", 1)
            if heads:
                self.refused(2, why, "verse", "--form", "wujue", "--heads", heads, "--seed", 1)

    def test_bad_forms(self):
        self.refused(2, "'sonnet'", "verse", "--form", "sonnet")
        self.refused(2, "--form", "verse")
        self.refused(2, "6", "acrostic", "春", "--chars", 6)
        self.refused(2, "2 heads.*4 lines", "verse", "--form", "wujue", "--heads", "春风")
        self.refused(2, "48 tokens.*47", "verse", "--form", "wulv", "--seed", 1)
        self.refused(2, "context", "acrostic", "春" * 12, "--seed", 1)
        self.refused(2, "temperature", "verse", "--form", "wujue", "--temperature", "nan")


if __name__ == "__main__":
    program.main()
