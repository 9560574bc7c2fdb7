#!/usr/bin/env python3
"""check, and generate under constraints: verdicts, exit statuses, refusals; what is generated is
accepted, and is the same with and without the cache and the forced tokens' batches."""

import json
import re

import program

SCHEMA = {"type": "object", "required": ["a"], "additionalProperties": False,
          "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 99},
                         "b": {"enum": ["x", "yy"]}}}
GRAMMAR = 'root ::= "(" root ")" | [ab]{2}\n'


class ConstraintTest(program.CliTest):
    def check(self, *arguments):
        return self.command("check", "--json", *arguments)

    def test_verdicts(self):
        run = self.check("--regex", "[0-9]{4}", "2024", "24", "x", "")
        self.assertEqual(run.status, 1)
        self.assertEqual(run.json["results"], [
            {"text": "2024", "accepted": True, "complete": True, "position": 4},
            {"text": "24", "accepted": True, "complete": False, "position": 2},
            {"text": "x", "accepted": False, "complete": False, "position": 0},
            {"text": "", "accepted": True, "complete": False, "position": 0}])
        self.assertEqual(self.check("--choice", "a", "--choice", "春", "春").status, 0)
        schema = self.path("s.json", json.dumps(SCHEMA))
        self.assertEqual(self.check("--json-schema", schema, ' {"b":"x" , "a":1e1} ').status, 0)
        self.assertEqual(self.check("--json-schema", schema, '{"a":100}').status, 1)
        grammar = self.path("g.gbnf", GRAMMAR)
        self.assertEqual(self.check("--grammar", grammar, "((ab))", "bb").status, 0)
        self.assertEqual(self.check("--form", "wujue", "一二三四五，一二三四五。" * 2).status, 0)
        self.assertEqual(self.check("--form", "wujue", "一二三四五，").status, 1)

    def test_formats(self):
        schema = self.path("s.json", '{"format":"date"}')
        self.assertEqual(self.check("--json-schema", schema, '"x"').status, 0)
        run = self.check("--json-schema", schema, "--formats", "assert", '"x"')
        self.assertEqual(run.status, 1)

    def test_refusals(self):
        self.refused(2, "lacks its '\\)'", "check", "--regex", "(", "x")
        self.refused(2, "one of", "check", "x")
        self.refused(2, "only one", "check", "--regex", "a", "--choice", "b", "x")
        self.refused(2, "text", "check", "--regex", "a")
        self.refused(2, "sonnet", "check", "--form", "sonnet", "x")
        self.refused(2, "need --json-schema", "check", "--regex", "a", "--formats", "assert", "x")
        self.refused(1, "none.json", "check", "--json-schema", self.path("none.json"), "x")
        for text, why in (("{", "not JSON"), ("false", "no value"), ('{"$ref":"#/x"}', "nowhere"),
                          ('{"uniqueItems":true}', "uniqueItems")):
            schema = self.path("bad.json", text)
            self.refused(2, why, "check", "--json-schema", schema, "1")
            self.refused(2, why, "generate", "--json-schema", schema, "--seed", 1)
        left = self.path("left.gbnf", 'root ::= root "a" | "b"')
        self.refused(2, "left-recursive", "generate", "--grammar", left, "--seed", 1)

    def generate(self, *arguments):
        return self.kvasir("generate", "--seed", 3, "--temperature", 3, "--count", 4, "-n", 40,
                           "--json", *arguments).json["choices"]

    def test_generates_the_language(self):
        for choice in self.generate("--regex", "(ab|春风){2}[0-9]"):
            self.assertRegex(choice["text"], "\\A(ab|春风){2}[0-9]\\Z")
            self.assertEqual(choice["finish_reason"], "constraint")
        for choice in self.generate("--choice", "yes", "--choice", "no"):
            self.assertIn(choice["text"], ("yes", "no"))
        schema = self.path("s.json", json.dumps(SCHEMA))
        for choice in self.generate("--json-schema", schema, "--json-layout", "compact"):
            if choice["finish_reason"] == "constraint":
                value = json.loads(choice["text"])
                self.assertTrue(1 <= value["a"] <= 99 and value.get("b", "x") in ("x", "yy"))
        grammar = self.path("g.gbnf", GRAMMAR)
        for choice in self.generate("--grammar", grammar):
            if choice["finish_reason"] == "constraint":
                self.assertTrue(re.fullmatch(r"\(*[ab]{2}\)*", choice["text"]))
                self.assertEqual(self.check("--grammar", grammar, choice["text"]).status, 0)

    def test_compact_is_what_json_dumps_writes(self):
        anything = self.path("any.json", "{}")
        compact = ("--json-schema", anything, "--json-layout", "compact")
        for value in (None, True, 0, -7, 10**30, 0.5, -12.25, "",
                      'a"\\/\b\f\n\r\t\x1f\x7fé春\U0001f600',
                      [], {}, [1, [2]], {"b": {"é\n": 1}, "a": [None, ""]}):
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            self.assertEqual(self.check(*compact, "--", text).status, 0, text)
        for text in ("1.0", "1e0", "-0", "0.50", '"\\u0061"', '"\\/"', "[1, 2]", '{"a" :1}'):
            self.assertEqual(self.check(*compact, "--", text).status, 1, text)
        schema = self.path("s.json", json.dumps(
            {"type": "object", "additionalProperties": False, "required": ["a", "b"],
             "properties": {"a": {"type": "integer", "maximum": 999}, "b": {"maxLength": 3,
                                                                           "type": "string"}}}))
        for choice in self.generate("--json-schema", schema, "--json-layout", "compact"):
            if choice["finish_reason"] == "constraint":
                text = choice["text"]
                self.assertEqual(self.check("--json-schema", schema, "--", text).status, 0, text)
                self.assertEqual(json.dumps(json.loads(text), separators=(",", ":"),
                                            ensure_ascii=False), text)

    def test_memory_is_limited(self):
        asked = ("--regex", "((a{300}|a{301}|a{305}),?){1,300}", "a" * 60000)
        self.refused(2, "more than 1 MiB, the limit", "check", "--constraint-memory", "1MiB",
                     *asked)
        self.refused(2, "--constraint-memory", "check", "--constraint-memory", "1kB", *asked)
        self.refused(2, "needs --regex", "check", "--constraint-memory", "1MiB", "--form", "wujue",
                     "x")

    def test_bench_masks(self):
        for folder in ("schemas", "bad"):
            (self.home / folder).mkdir()
        self.path("schemas/none.txt", "")
        self.path("schemas/a.json", json.dumps({"schema": SCHEMA, "tests": [
            {"data": {"a": 7}, "valid": True}, {"data": {"a": "x"}, "valid": False}]}))
        self.path("schemas/b.json", json.dumps({"schema": False, "tests": [{"data": 1}]}))
        folder = self.path("schemas")
        out = self.kvasir("bench", "masks", "--schemas", folder, "--json").json
        self.assertEqual((out["schemas"], out["refused"]), (2, 1))
        self.assertEqual(out["rows"][0]["masks"], len('{"a":7}') + len('{"a":"'))
        self.assertEqual(out["slowest"][0]["schema"], "a.json")
        rows = self.kvasir("bench", "masks", "--json").json["rows"]
        self.assertEqual([row["constraint"] for row in rows],
                         ["date", "couplet", "nested", "person"])
        self.refused(2, "--formats needs --schemas", "bench", "masks", "--formats", "assert")
        self.refused(1, "none", "bench", "masks", "--schemas", self.path("none"))
        self.path("bad/a.json", "[1]")
        self.refused(1, "a.json", "bench", "masks", "--schemas", self.path("bad"))

    def test_same_bits_however_it_is_computed(self):
        asked = ("--regex", "春{3}[ab]{4}=[0-9]{2};")
        choices = self.generate(*asked)
        self.assertEqual(self.generate(*asked, "--no-kv-cache"), choices)
        self.assertEqual(self.generate(*asked, "--prefill-chunk", 1, "--threads", 2), choices)


if __name__ == "__main__":
    program.main()
