#!/usr/bin/env python3
"""Sessions of the server: blocks laid aside by name and taken in again, and texts that go on from
them as if they had never stopped."""

import pathlib
import tempfile
import unittest

import serving

IDS = [259 + i % 20 for i in range(40)]
SETTINGS = {"seed": 11, "temperature": 1.2, "presence_penalty": 0.7, "repetition_penalty": 1.1,
            "top_k": 15, "logprobs": 1}


class SessionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "sessions"

    def session(self, server, name, **body):
        return server.json(f"/v1/sessions/{name}", body)

    def refused(self, server, status, name, **body):
        got, _, text = server.ask(f"/v1/sessions/{name}", body)
        self.assertEqual(got, status, text)
        self.assertNotIn(str(self.folder).encode(), text)
        return text.decode()

    @staticmethod
    def ids_of(server, text):
        return server.json("/tokenize", {"text": text})["tokens"]

    def test_goes_on_in_another_process(self):
        with serving.Served() as plain:
            whole = plain.complete(prompt=IDS, max_tokens=30, **SETTINGS)["choices"][0]
        with serving.Served("--sessions", self.folder) as server:
            head = server.complete(prompt=IDS, max_tokens=12, **SETTINGS)["choices"][0]
            ids = IDS + self.ids_of(server, head["text"])
            saved = self.session(server, "a-text", action="save", prompt=ids)
            self.assertEqual(saved["tokens"], 52)
            self.assertEqual(saved["token_ids"], ids)
            self.assertEqual(saved["cached_tokens"], 48)
        with serving.Served("--sessions", self.folder) as server:
            loaded = self.session(server, "a-text", action="load")
            self.assertEqual(loaded["token_ids"], ids)
            self.assertEqual(loaded["cached_tokens"], 48)
            reply = server.complete(prompt=loaded["token_ids"], continued=12, max_tokens=18,
                                    **SETTINGS)
            self.assertEqual(reply["usage"]["prompt_tokens_details"]["cached_tokens"], 48)
            rest = reply["choices"][0]
            self.assertEqual(head["text"] + rest["text"], whole["text"])
            self.assertEqual(head["logprobs"]["token_logprobs"] +
                             rest["logprobs"]["token_logprobs"],
                             whole["logprobs"]["token_logprobs"])
            self.session(server, "a-text", action="delete")
            self.refused(server, 404, "a-text", action="load")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_off_unless_asked_for(self):
        with serving.Served() as server:
            self.assertIn("keeps no sessions", self.refused(server, 404, "a", action="load"))

    def test_names_and_bodies(self):
        with serving.Served("--sessions", self.folder) as server:
            for name in ("..", ".a", "a%2fb", "a/b", "a" * 65, "%00", "春".encode().hex() + "%"):
                self.assertIn("name", self.refused(server, 400, name, action="save", prompt="a"))
            for body in ({}, {"action": "list"}, {"action": "save"},
                         {"action": "save", "prompt": ["a", "b"]},
                         {"action": "load", "prompt": "a"}, {"action": "save", "prompt": [10**6]},
                         {"action": "load", "path": "/x"}):
                self.refused(server, 400, "a", **body)
            self.refused(server, 404, "a", action="delete")
            status, _, text = server.ask("/v1/completions", {
                "model": server.model, "prompt": "春风", "continued": 1, "max_tokens": 1})
            self.assertEqual(status, 400, text)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_of_another_salt_it_is_not_there(self):
        with serving.Served("--sessions", self.folder) as server:
            self.session(server, "a", action="save", prompt=IDS, cache_salt="mine")
            self.refused(server, 404, "a", action="load")
            self.refused(server, 404, "a", action="delete", cache_salt="yours")
            self.refused(server, 409, "a", action="save", prompt=IDS, cache_salt="yours")
            self.session(server, "a", action="load", cache_salt="mine")

    def test_damaged_or_of_another_setting_it_is_refused(self):
        with serving.Served("--sessions", self.folder) as server:
            self.session(server, "a", action="save", prompt=IDS)
        file = self.folder / "a.kvsession"
        with serving.Served("--sessions", self.folder, "--kv", "dtype=f16") as server:
            self.assertIn("--kv", self.refused(server, 409, "a", action="load"))
            content = bytearray(file.read_bytes())
            content[-1] ^= 1
            file.write_bytes(content)
            self.assertIn("altered", self.refused(server, 409, "a", action="load"))


if __name__ == "__main__":
    serving.main()
