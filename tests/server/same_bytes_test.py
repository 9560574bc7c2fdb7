#!/usr/bin/env python3
"""The same bytes under any load: many different requests alone, then all at once in another order,
with others that are cut off between them."""

import json
import os
import random
import re
import threading
import unittest

import serving

SEED = int(os.environ.get("KVASIR_TEST_SEED", "1"))
REQUESTS = 200
AT_ONCE = 64
TEXTS = ["春", "春风", "春风花月江山", "白日依山", "a", "ab ba", "水" * 40, "月\n", "天云日夜雨" * 8]
FIRST = 3 + 256  # Id of the tiny model's first character, after special tokens and bytes.
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99},
                                           "b": {"enum": ["x", "yy"]}},
          "required": ["a", "b"], "additionalProperties": False}


def constraint(rng):
    return rng.choice([
        {"regex": "[ab]{3,9}"}, {"choice": ["春风", "春花", "a"]},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n",
                                                                    "schema": SCHEMA}}},
        {"grammar": 'root ::= ("a" | "b")+ "。"'}, {"verse": {"form": "wujue"}}])


def sampling(rng):
    fields = {"temperature": rng.choice([0, 0.5, 1, 1.7, 2]), "seed": rng.randrange(2**63),
              "max_tokens": rng.randrange(1, 60)}
    for name, value in (("top_k", rng.randrange(1, 20)), ("top_p", rng.uniform(0.2, 1)),
                        ("min_p", rng.uniform(0, 0.3)), ("repetition_penalty", 1.3),
                        ("presence_penalty", rng.uniform(-2, 2)),
                        ("frequency_penalty", rng.uniform(-2, 2)),
                        ("logit_bias", {str(FIRST + rng.randrange(20)): 4}),
                        ("stop", rng.choice(["。", ["花", "ab"]])), ("n", rng.randrange(2, 4)),
                        ("user", "somebody"), ("cache_salt", rng.choice(["x", "y"]))):
        if rng.random() < 0.2:
            fields[name] = value
    if rng.random() < 0.25:
        fields.update(constraint(rng))
    return fields


def make(rng, model):
    """Path and body of a request."""
    body = {"model": model, **sampling(rng)}
    if rng.random() < 0.5:
        body["stream"] = True
        if rng.random() < 0.5:
            body["stream_options"] = {"include_usage": True}
    if rng.random() < 0.4:
        body["messages"] = [{"role": "user", "content": rng.choice(TEXTS)}]
        if rng.random() < 0.4:
            body.update(logprobs=True, top_logprobs=rng.randrange(0, 4))
        return "/v1/chat/completions", body
    body["prompt"] = rng.choice([rng.choice(TEXTS), rng.sample(TEXTS, 2),
                                 [FIRST + rng.randrange(20) for _ in range(5)]])
    if rng.random() < 0.4:
        body["logprobs"] = rng.randrange(0, 4)
    body["echo"] = rng.random() < 0.3
    return "/v1/completions", body


def comparable(text):
    """Only what was found in the cache may differ, and how the events of a stream's choices mix:
    sorted by choice, they keep their order."""
    text = re.sub(rb'"cached_tokens":\d+', b'"cached_tokens":0', text)
    if not text.startswith(b"data: "):
        return text
    def choice(event):
        found = re.search(rb'"choices":\[{"index":(\d+)', event)
        return int(found[1]) if found else 1 << 30  # The usage and [DONE] stay last.
    return b"\n\n".join(sorted(text.split(b"\n\n"), key=choice))


class SameBytesTest(unittest.TestCase):
    def test_alone_and_under_load(self):
        print(f"seed {SEED}")
        rng = random.Random(SEED)
        with serving.Served("--max-batch", 16, "--step-tokens", 96) as server:
            requests = [make(rng, server.model) for _ in range(REQUESTS)]
            alone = [server.ask(path, body) for path, body in requests]
            for (path, body), (status, _, text) in zip(requests, alone):
                self.assertEqual(status, 200, f"{path} {body} {text.decode()}")
                self.assertTrue(text)
            self.assertGreater(len({text for _, _, text in alone}), REQUESTS * 0.9)
            order = list(range(REQUESTS)) + [None] * (REQUESTS // 4)
            rng.shuffle(order)
            self.under_load(server, requests, alone, order)
            self.assertIn(" 499 ", "".join(server.log))  # Some were cut off indeed.

    def under_load(self, server, requests, alone, order):
        """Runs all of them, AT_ONCE at a time; None stands for one that is cut off."""
        lock, different = threading.Lock(), []

        def work():
            while True:
                with lock:
                    if not order:
                        return
                    index = order.pop()
                if index is None:
                    self.cut_off(server)
                    continue
                path, body = requests[index]
                status, _, text = server.ask(path, body)
                if status != 200 or comparable(text) != comparable(alone[index][2]):
                    different.append((path, body, status, text, alone[index][2]))

        threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(different, f"{len(different)} of {REQUESTS} differ; the first: "
                                    f"{different[:1]}")

    @staticmethod
    def cut_off(server):
        connection = server.connection()
        connection.request("POST", "/v1/completions", json.dumps({
            "model": server.model, "prompt": "春风花月", "max_tokens": 200, "n": 3,
            "temperature": 2}), {"Content-Type": "application/json"})
        connection.close()


if __name__ == "__main__":
    serving.main()
