#!/usr/bin/env python3
"""Known faults of constraints: what a model would rather write never gets past them, and they end
when they are complete. What they accept is held against `check`; the languages themselves are
tested where they are compiled."""

import json

import running
from running import serving

END_OF_TURN = running.EOS + 1


def two_ends():
    """The vocabulary of the scripted models with a second end token."""
    vocabulary = dict(running.VOCABULARY)
    vocabulary["tokenizer.ggml.tokens"] = vocabulary["tokenizer.ggml.tokens"] + ["<|turn|>"]
    vocabulary["tokenizer.ggml.token_type"] = vocabulary["tokenizer.ggml.token_type"] + [3]
    return vocabulary | {"tokenizer.ggml.eot_token_id": END_OF_TURN}


class ConstraintsTest(running.CaseTest):
    def choices(self, content, *flags, count=1):
        path = self.file("model.gguf", content)
        return self.kvasir("generate", "-m", path, "-p", "z", "--seed", 1, "--count", count,
                           "--json", *flags).json["choices"]

    def accepted(self, texts, *constraint):
        run = self.command("check", *constraint, "--", *texts)
        self.assertEqual(run.status, 0, (constraint, texts, run.text))

    def test_c97_dots_and_classes_take_characters_and_not_bytes(self):
        # Would rather write ff, then beginnings without an end, than anything else.
        logits = {byte: 0.0 for byte in range(256)} | {0xFF: 9.0, 0xC0: 8.0, 0xED: 4.0, 0xF0: 4.0}
        grammar = self.path("g", "root ::= . [^x] .")
        for constraint, length in ((("--regex", ".{6}"), 6), (("--regex", "[^x]{6}"), 6),
                                   (("--grammar", grammar), 3)):
            for temperature in (0, 1):
                choices = self.choices(running.constant(logits), *constraint, "--temperature",
                                       temperature, count=12)
                texts = [choice["text"] for choice in choices]
                for choice in choices:
                    raw = bytes(choice["token_ids"])  # A token is the byte of its number.
                    self.assertEqual(raw.decode("utf-8"), choice["text"])
                    self.assertEqual(len(choice["text"]), length)
                    self.assertNotIn("\ufffd", choice["text"])
                self.accepted(texts, *constraint)
        self.assertGreater(len(set(texts)), 3)

    def test_c113_no_end_before_the_value_is_complete_and_none_missing_after_it(self):
        schema = self.path("s", json.dumps({
            "type": "object", "required": ["a"], "additionalProperties": False,
            "properties": {"a": {"enum": [7]}}}))
        compact = ("--json-schema", schema, "--json-layout", "compact", "--temperature", 0)
        for eager in ({running.EOS: 9.0, END_OF_TURN: 8.0}, {running.EOS: 8.0, END_OF_TURN: 9.0},
                      {running.EOS: -90.0, END_OF_TURN: -90.0}):  # Or never of itself.
            content = running.constant({ord("a"): 1.0} | eager, vocabulary=two_ends())
            for _ in range(2):
                choice = self.choices(content, *compact, "-n", 60)[0]
                self.assertEqual(choice["text"], '{"a":7}')
                self.assertIn(choice["finish_reason"], ("constraint", "stop"))
            cut = self.choices(content, *compact, "-n", 4)[0]
            self.assertEqual((cut["text"], cut["finish_reason"]), ('{"a"', "length"))
            stopped = self.choices(content, *compact, "--stop", "7")[0]
            self.assertEqual((stopped["text"], stopped["finish_reason"]), ('{"a":', "stop"))
        # Where more may follow, an end token ends the text, whichever of the two it is.
        for end in (running.EOS, END_OF_TURN):
            content = running.constant({ord("a"): 1.0, end: 9.0}, vocabulary=two_ends())
            choice = self.choices(content, "--regex", "b{2}a*", "--temperature", 0)[0]
            self.assertEqual((choice["text"], choice["finish_reason"]), ("bb", "stop"))

    def test_c113_the_server_ends_so_too(self):
        blanks = dict.fromkeys(b"\t\n\r ", -30.0)  # Allowed between all parts, without end.
        content = running.constant({running.EOS: 9.0, END_OF_TURN: 8.0} | blanks,
                                   vocabulary=two_ends())
        with serving.Served(model=self.file("served.gguf", content)) as server:
            schema = {"type": "json_schema", "json_schema": {
                "name": "n", "schema": {"const": {"a": [None, "x"]}}}}
            body = {"temperature": 0, "max_tokens": 60, "response_format": schema,
                    "messages": [{"role": "user", "content": "x"}], "model": server.model}
            choice = server.json("/v1/chat/completions", body)["choices"][0]
            self.assertEqual(json.loads(choice["message"]["content"]), {"a": [None, "x"]})
            self.assertEqual(choice["finish_reason"], "stop")
            body["max_tokens"] = 3
            choice = server.json("/v1/chat/completions", body)["choices"][0]
            self.assertEqual(choice["finish_reason"], "length")

    def test_c115_a_control_token_is_never_the_text_that_it_is_called(self):
        content = running.constant({running.EOS: 9.0, running.ABC: 5.0, ord("a"): 1.0})
        choice = self.choices(content, "--choice", "<|end|>", "--temperature", 0)[0]
        self.assertEqual(choice["text"], "<|end|>")
        self.assertEqual(choice["token_ids"], list(b"<|end|>"))
        # A token of several characters is taken where all of them fit, and only there.
        for text, ids in (("abc", [running.ABC]), ("abd", None)):
            choice = self.choices(content, "--choice", text, "--temperature", 0)[0]
            self.assertEqual(choice["text"], text)
            self.assertEqual(running.ABC in choice["token_ids"], ids is not None)

    def test_c101_repeats_in_repeats_compile_and_mask_at_once(self):
        content = running.constant({ord("a"): 1.0, ord("c"): 0.9, running.EOS: -30.0})
        for regex in ("(a{0,50}){0,50}", "((a?){30}){30}", "(a|b|ab)*c{1000}", "(x+x+)+y",
                      "[a-z]{0,10000}", "(.{0,100},){0,100}", "a{3}{3}"):
            choice = self.choices(content, "--regex", regex, "-n", 60, "--temperature", 0)[0]
            self.assertTrue(choice["text"])
        self.assertEqual(choice["text"], "a" * 9)

    def test_c89_c91_c93_the_program_says_which_rule_is_wrong(self):
        for grammar, why in (('root ::= root "a" | "b"', "'root' is left-recursive"),
                             ('root ::= b\na ::= b "x" | "1"\nb ::= a "y"', "left-recursive"),
                             ('root ::= "a"{5,0}', "reversed"), ('root ::= "a"{-1}', "number"),
                             ('root ::= "a"{2000000000,2147483647}', "above"),
                             ('root ::= "a"{99999999999999999999}', "above"),
                             ("root ::= foo", "'foo'"), ("", "no rule 'root'"),
                             ("# nothing", "no rule 'root'"),
                             ('root ::= "a"\nroot ::= "b"', "twice")):
            self.refused(2, why, "check", "--grammar", self.path("g", grammar), "x")
        for grammar, good in (('root ::= "a"\n  | "b"\r\n\t| "c" # or', ["a", "b", "c"]),
                              ('root ::= "a"{0}', [""]), ('root ::= "a"{0,0}', [""]),
                              ('root ::= "a"{,3}', ["", "a", "aaa"]), ("root ::=", [""])):
            self.accepted(good, "--grammar", self.path("g", grammar))


if __name__ == "__main__":
    running.main()
