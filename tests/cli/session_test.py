#!/usr/bin/env python3
"""Sessions and stores of generate: a text laid aside goes on as if it had not been; a prompt whose
blocks are stored is not computed again; nothing else changes."""

import pathlib
import random
import unittest

import program

PROMPT = "春风花月" * 4
SETTINGS = ["--temperature", "1.3", "--seed", "9", "--top-k", "12", "--repeat-penalty", "1.2",
            "--ban", "水", "--ignore-eos"]


class TextTest(program.CliTest):
    def generate(self, *flags):
        return self.kvasir("generate", "--json", *map(str, flags))

    def choice(self, *flags):
        return self.generate(*flags).json["choices"][0]

    def refuses(self, status, says, *flags):
        self.refused(status, says, "generate", "--json", *flags)


class SessionTest(TextTest):
    def check_cut(self, cut, total, *flags):
        whole = self.choice("-p", PROMPT, "-n", total, *SETTINGS, *flags)
        session = self.path("s.kvsession")
        head = self.choice("-p", PROMPT, "-n", cut, *SETTINGS, *flags, "--save-session", session)
        rest = self.generate("--load-session", session, "-n", total - cut,
                             *flags).json
        self.assertGreater(rest["usage"]["cached_tokens"], 0)
        for field in ("token_ids", "logprobs"):
            self.assertEqual(head[field] + rest["choices"][0][field], whole[field])
        self.assertEqual(head["text"] + rest["choices"][0]["text"], whole["text"])

    def test_goes_on_as_if_never_laid_aside(self):
        for cut in (1, 7, 16, 17, 23):
            self.check_cut(cut, 24)

    def test_under_a_cache_policy(self):
        self.check_cut(9, 24, "--kv", "dtype=int8,window=20,sinks=2")

    def test_under_a_constraint_of_a_file_that_is_gone(self):
        grammar = self.path("g.gbnf", 'root ::= ("a" | "b")+ "。" [a-b]*')
        flags = ["--grammar", grammar, "--seed", "3", "--temperature", "1.5"]
        whole = self.choice("-p", PROMPT, "-n", "20", *flags)
        session = self.path("s")
        head = self.choice("-p", PROMPT, "-n", "6", *flags, "--save-session", session)
        pathlib.Path(grammar).unlink()
        rest = self.choice("--load-session", session, "-n", "14")
        self.assertEqual(head["token_ids"] + rest["token_ids"], whole["token_ids"])
        self.assertEqual(rest["finish_reason"], whole["finish_reason"])

    def test_again_and_again(self):
        whole = self.choice("-p", PROMPT, "-n", "24", *SETTINGS)
        session = self.path("s")
        ids = self.choice("-p", PROMPT, "-n", "3", *SETTINGS, "--save-session",
                          session)["token_ids"]
        for _ in range(7):
            ids += self.choice("--load-session", session, "-n", "3", "--save-session",
                               session)["token_ids"]
        self.assertEqual(ids, whole["token_ids"])

    def saved(self, *flags):
        session = self.path("s")
        self.choice("-p", PROMPT, "-n", "4", *SETTINGS, *flags, "--save-session", session)
        return session

    def test_what_is_not_its_session_is_refused(self):
        session = self.saved()
        self.refuses(1, "another model", "--load-session", session, "-m",
                     program.SHARED / "grouped.gguf")
        self.refuses(1, "with --kv", "--load-session", session, "--kv", "dtype=f16")
        self.refuses(1, "--block-tokens 16", "--load-session", session, "--block-tokens", "32")
        self.refuses(1, "not a session", "--load-session", program.SHARED / "tiny.gguf")
        self.refuses(1, "none", "--load-session", self.path("none"))
        self.refuses(2, "--temperature", "--load-session", session, "--temperature", "1")
        self.refuses(2, "--prompt", "--load-session", session, "-p", "x")
        self.refuses(2, "one text", "--save-session", session, "--count", "2", "-p", "x")

    def test_what_is_damaged_is_refused(self):
        session = pathlib.Path(self.saved())
        content = session.read_bytes()
        rng = random.Random(1)
        for _ in range(12):
            damaged = bytearray(content)
            damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
            session.write_bytes(damaged)
            self.refuses(1, "session", "--load-session", session)
        session.write_bytes(content[:len(content) // 2])
        self.refuses(1, "truncated", "--load-session", session)


class StoreTest(TextTest):
    def test_a_prompt_is_computed_once(self):
        store = self.path("store")
        flags = ["-p", PROMPT, "-n", "20", *SETTINGS, "--store", store]
        plain = self.choice(*flags[:-2])
        first = self.generate(*flags).json
        self.assertEqual(first["choices"][0], plain)
        self.assertEqual(first["usage"]["cached_tokens"], 0)
        second = self.generate(*flags).json
        self.assertEqual(second["choices"][0], plain)
        # All of its 16 tokens lie in one block, but the last must be computed for its logits.
        longer = ["-p", PROMPT + "雨" * 9, *flags[2:]]
        self.generate(*longer)
        found = self.generate(*longer).json
        self.assertEqual(found["usage"]["cached_tokens"], 16)
        self.assertEqual(found["store"]["refused"], 0)
        self.assertEqual(found["choices"][0], self.choice(*longer[:-2]))
        other = self.generate(*longer, "--kv", "dtype=f16").json
        self.assertEqual(other["usage"]["cached_tokens"], 0)

    def test_a_store_that_cannot_be_had(self):
        flags = ["-p", PROMPT, "-n", "3", *SETTINGS]
        self.refuses(1, "/proc/none", *flags, "--store", "/proc/none/at/all")
        self.refuses(2, "'99999999'", *flags, "--store", "redis://h:99999999")
        self.refuses(2, "directory", *flags, "--store", "redis://h", "--store-limit", "1GiB")
        # A server that is not there costs time only.
        down = self.choice(*flags, "--store", "redis://127.0.0.1:1")
        self.assertEqual(down, self.choice(*flags))


if __name__ == "__main__":
    program.main()
