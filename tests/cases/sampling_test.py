#!/usr/bin/env python3
"""Known faults of sampling: settings that mean something else, draws that depend on neighbours,
numbers that are none. Models whose logits are known, by the program and by the server."""

import collections
import concurrent.futures
import json
import math
import random

import running
from running import serving

A, B, C, D = 97, 98, 99, 100  # Tokens of the bytes "a" to "d".


class SamplingTest(running.CaseTest):
    def serve(self, content=None, *flags):
        """A server of this model, until the test ends; the small random one if none is given."""
        path = None if content is None else self.file("served.gguf", content)
        server = serving.Served(*flags, model=path)
        self.addCleanup(server.__exit__)
        return server

    def test_c03_zero_is_a_value_and_not_absence(self):
        server = self.serve(running.constant({A: 1.0, B: 0.5, C: 0.0}))

        def ask(**fields):
            return server.complete(prompt=[A], **fields)["choices"][0]
        self.assertEqual(ask(temperature=0, seed=5)["text"], "a" * 16)
        self.assertNotEqual(ask(seed=5)["text"], "a" * 16)
        body = {"model": server.model, "prompt": [A], "seed": 0}
        first, second = (server.ask("/v1/completions", body) for _ in range(2))
        self.assertEqual(first[2], second[2])
        self.assertEqual(first[1]["X-Kvasir-Seed"], "0")
        none = ask(max_tokens=0, seed=5)
        self.assertEqual((none["text"], none["finish_reason"]), ("", "length"))
        scored = ask(logprobs=0, seed=5)["logprobs"]
        self.assertEqual(len(scored["token_logprobs"]), 16)
        self.assertFalse(any(scored["top_logprobs"] or []))
        self.assertIsNone(ask(seed=5)["logprobs"])
        self.assertEqual(self.refused_by(server, 400, {**body, "top_p": 0})["param"], "top_p")
        for neutral in ("top_k", "min_p"):  # 0 is their documented "off".
            self.assertEqual(ask(seed=5, **{neutral: 0}), ask(seed=5))

    def test_c05_top_k_0_is_off_by_every_way_in(self):
        content = running.constant(dict.fromkeys((A, B, C, D), 0.0))
        path = self.file("flat.gguf", content)
        choices = self.kvasir("generate", "-m", path, "-p", "a", "--top-k", 0, "--temperature", 1,
                              "--seed", 4, "-n", 50, "--count", 8, "--json").json["choices"]
        server = self.serve(content)
        answer = server.complete(prompt=[A], top_k=0, seed=4, max_tokens=50, n=8)["choices"]
        for texts in (choices, answer):
            counts = collections.Counter("".join(choice["text"] for choice in texts))
            self.assertEqual(sorted(counts), list("abcd"))
            for count in counts.values():  # Of 400 draws: 100 on average, deviation 8.7.
                self.assertTrue(60 < count < 140, counts)
        self.assertEqual([choice["text"] for choice in choices],
                         [choice["text"] for choice in answer])
        self.refused(2, "top-k.*-1", "generate", "-m", path, "-p", "a", "--top-k", -1)
        error = self.refused_by(server, 400, {"model": server.model, "prompt": "a", "top_k": -1})
        self.assertEqual(error["param"], "top_k")

    def together(self, server, *bodies):
        """The choices of these requests, sent at once."""
        with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            answers = pool.map(lambda body: server.complete(**body), bodies)
            return [answer["choices"] for answer in answers]

    def test_c07_top_k_on_and_off_in_one_batch(self):
        server = self.serve(running.constant({A: 1.0, B: 0.9, C: 0.8, D: 0.7}))
        greedy = {"prompt": [A], "temperature": 0, "top_k": 0, "max_tokens": 60, "seed": 1}
        two = {"prompt": [B], "top_k": 2, "max_tokens": 60, "seed": 2}
        alone = [self.together(server, body)[0] for body in (greedy, two)]
        self.assertEqual(alone[0][0]["text"], "a" * 60)
        self.assertEqual(set(alone[1][0]["text"]), {"a", "b"})
        for order in ((0, 1), (1, 0)):
            bodies = [(greedy, two)[i] for i in order]
            self.assertEqual(self.together(server, *bodies), [alone[i] for i in order])

    def test_c09_temperature_0_is_greedy_and_no_division(self):
        path = self.file("near.gguf", running.constant({0: 1.0, 1: 5.0, 2: 5.000001, 3: 2.0}))
        for flags in (("0",), ("-0.0",), ("1e-45",), ("0", "--top-k", 3), ("0", "--top-p", 0.1)):
            for seed in (1, 2):
                self.assertEqual(self.ids("-m", path, "-p", "a", "-n", 8, "--temperature", *flags,
                                          seed=seed), [[2] * 8], flags)
        for bad in ("-1", "nan", "inf", "1e400", "-1e-45"):
            self.refused(2, "temperature", "generate", "-m", path, "-p", "a", "--temperature", bad)

    def test_c11_a_logit_that_is_no_number_ends_the_text_with_an_error(self):
        for name, bad in (("nan", math.nan), ("inf", math.inf), ("minus", -math.inf)):
            for token in (0, C, 260):
                content = running.constant({A: 1.0, token: bad})
                path = self.file(f"{name}.gguf", content)
                for temperature in (0, 1):
                    self.refused(1, "finite|nan|inf", "generate", "-m", path, "-p", "a", "--seed",
                                 1, "--temperature", temperature)
        everything = running.model(None, lambda token: [math.nan] + [0.0] * 7, 64)
        self.refused(1, "finite|nan", "generate", "-m", self.file("all.gguf", everything), "-p",
                     "a", "--seed", 1)

    def test_c11_the_server_answers_with_status_500_and_lives(self):
        # Every weight is finite; the norm makes √7 of a lone 1, and √7 · 3·10³⁸ is not.
        content = running.model(lambda p: [float(j == 0) for j in range(8)],
                                lambda token: [3e38 * (token == A)] + [0.0] * 7, 64)
        server = self.serve(content)
        for temperature in (0, 1):
            error = self.refused_by(server, 500, {"model": server.model, "prompt": [A],
                                                  "temperature": temperature})
            self.assertRegex(error["message"], "finite|nan|inf")

    def test_c13_top_p_sees_what_top_k_left_wherever_one_asks(self):
        content = running.constant({A: math.log(0.4), B: math.log(0.3), C: math.log(0.2),
                                    D: math.log(0.1)})
        path = self.file("four.gguf", content)
        server = self.serve(content)
        for settings, expected in (({"top_k": 2, "top_p": 0.55}, {"a"}),
                                   ({"top_p": 0.55}, {"a", "b"})):
            flags = [part for name, value in settings.items()
                     for part in ("--" + name.replace("_", "-"), value)]
            text = self.kvasir("generate", "-m", path, "-p", "a", "--temperature", 1, "--seed", 3,
                               "-n", 60, *flags).text.rstrip("\n")
            self.assertEqual(set(text), expected)
            answer = server.complete(prompt=[A], seed=3, max_tokens=60, logprobs=1, **settings)
            self.assertEqual(answer["choices"][0]["text"], text)
            table = server.json("/kvasir/next", {"prompt": [A], **settings, "temperature": 1})
            self.assertEqual(table["candidates"], len(expected))
            for drawn, logprob in zip(text, answer["choices"][0]["logprobs"]["token_logprobs"]):
                # The model's own distribution, before any filter.
                self.assertAlmostEqual(logprob, math.log({"a": 0.4, "b": 0.3}[drawn]), 5)

    def test_c19_logit_bias_names_a_token_and_a_small_number(self):
        server = self.serve()
        body = {"model": server.model, "prompt": "春", "temperature": 0, "max_tokens": 4}
        size = server.json(f"/v1/models/{server.model}")["vocab_size"]
        for bias in ('{"%d":5}' % size, '{"-1":5}', '{"99999999999":5}', '{"abc":5}',
                     '{"3":1e309}', '{"3":"x"}', '{"3":101}', '[[3,5]]', '{"3":null}',
                     '{"18446744073709551616":5}', '{" 3":5}', '{"3.0":5}', '7'):
            text = json.dumps(body)[:-1] + f', "logit_bias": {bias}}}'
            error = self.refused_by(server, 400, text.encode())
            self.assertRegex(error["message"], "logit.bias|1e309", bias)
            if error["code"] != "invalid_json":  # As 1e309 is.
                self.assertRegex(error["param"], r"\Alogit_bias", bias)
        how = {"prompt": "春", "temperature": 0, "max_tokens": 4}
        self.assertEqual(server.json("/detokenize", {"tokens": [size - 1]})["text"], "，")
        only = server.complete(**how, logit_bias={str(size - 1): 100})["choices"][0]["text"]
        self.assertEqual(only, "，，，，")
        never = server.complete(**how, logit_bias={str(size - 1): -100, "0": 100})
        self.assertNotIn("，", never["choices"][0]["text"])

    def test_c21_a_seed_gives_its_text_whatever_the_neighbours(self):
        server = self.serve()
        first = {"prompt": "春风花", "seed": 42, "temperature": 0.8, "max_tokens": 120,
                 "logprobs": 0}
        other = {"prompt": "江山", "max_tokens": 150}
        expected = server.complete(**first)["choices"]
        for more in ({}, {"seed": 7}, {"temperature": 0}, {"temperature": 2, "n": 3}):
            for bodies in ((first, {**other, **more}), ({**other, **more}, first)):
                got = self.together(server, *bodies)
                self.assertEqual(got[bodies.index(first)], expected, more)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            leaving = server.connection()
            leaving.request("POST", "/v1/completions", json.dumps(
                {**other, "model": server.model, "stream": True, "n": 4}),
                {"Content-Type": "application/json"})
            reply = leaving.getresponse()
            answer = pool.submit(server.complete, **first)
            reply.read(200)
            reply.close()
            leaving.close()  # Half-way.
            self.assertEqual(answer.result()["choices"], expected)

    def test_c23_requests_at_once_draw_numbers_of_their_own(self):
        server = self.serve(running.constant(dict.fromkeys(range(A - 32, A + 32), 0.0)))
        answers = self.together(server, *[{"prompt": [A], "max_tokens": 1}] * 64)
        tokens = {choices[0]["text"] for choices in answers}
        # 64 draws of 64 tokens hit 40.6 of them, standard deviation 3.
        self.assertGreater(len(tokens), 24)

    def test_c25_the_seed_that_is_told_is_the_one_that_was_used(self):
        how = ("generate", "-p", "春", "-n", 40, "--temperature", 1.5)
        run = self.kvasir(*how)
        told = run.err.split()[-1]
        self.assertRegex(run.err, r"\Aseed \d+\n\Z")
        self.assertEqual(self.kvasir(*how, "--seed", told).out, run.out)
        texts = set()
        seeds = [0, 2**32, 2**63, 2**64 - 1]
        for seed in seeds:
            run = self.kvasir(*how, "--seed", seed, "--json")
            self.assertEqual(run.json["seed"], seed)
            texts.add(run.json["choices"][0]["text"])
        self.assertEqual(len(texts), len(seeds))  # None was cut to another.
        for bad in (-1, 2**64, "1.5", "x"):
            self.refused(2, "seed", *how, "--seed", bad)

    def test_c25_the_server_tells_the_seed_too(self):
        server = self.serve()
        for seed in (None, -1, 2**63, 2**64 - 1):
            body = {"model": server.model, "prompt": "春", "temperature": 1.5, "max_tokens": 40}
            _, head, text = server.ask("/v1/completions",
                                       body if seed is None else {**body, "seed": seed})
            again = server.complete(**{**body, "seed": int(head["X-Kvasir-Seed"])})
            self.assertEqual(json.loads(text)["choices"], again["choices"])
        self.refused_by(server, 400, {"model": server.model, "prompt": "春", "seed": 2**64})

    def test_c27_log_probabilities_are_the_models_own(self):
        content = running.constant({A: math.log(3), B: 0.0})
        path = self.file("two.gguf", content)
        for temperature in (0, 1, 2):
            run = self.kvasir("generate", "-m", path, "-p", "a", "-n", 3, "--seed", 1,
                              "--temperature", temperature, "--logprobs", 2, "--json")
            for token in run.json["choices"][0]["tokens"]:
                best = [row["logprob"] for row in token["top"]]
                self.assertAlmostEqual(best[0], -0.287682, 5)
                self.assertAlmostEqual(best[1], -1.386294, 5)
                self.assertLessEqual(token["logprob"], 0)
        table = self.serve(content).json("/kvasir/next", {"prompt": [A], "top": 1000})
        self.assertEqual(len(table["tokens"]), running.EOS + 1)
        self.assertAlmostEqual(sum(math.exp(row["logprob"]) for row in table["tokens"]), 1, 5)

    def test_c29_rows_of_the_head_without_a_token_are_never_drawn(self):
        vocabulary = dict(running.VOCABULARY)
        vocabulary["tokenizer.ggml.tokens"] = vocabulary["tokenizer.ggml.tokens"] + [
            f"[PAD{i}]" for i in range(5)]
        vocabulary["tokenizer.ggml.token_type"] = (
            vocabulary["tokenizer.ggml.token_type"] + [5] * 5)  # Unused.
        logits = dict.fromkeys(range(running.EOS + 1), -1.0)
        logits |= dict.fromkeys(range(running.EOS + 1, running.EOS + 6), 0.0)
        server = self.serve(running.constant(logits, vocabulary=vocabulary))
        for temperature in (0, 1, 2):
            answer = server.complete(prompt=[A], temperature=temperature, seed=2, max_tokens=60)
            self.assertNotIn("PAD", answer["choices"][0]["text"])
        padded = running.gguf_file.gpt2_model(running.VOCABULARY, rows=running.EOS + 6)
        self.refused(1, f"{running.EOS + 1}", "generate", "-m", self.file("rows.gguf", padded),
                     "-p", "a", "--seed", 1)

    def test_c31_the_last_of_any_number_of_tokens_can_be_drawn(self):
        draw = random.Random(31)
        for size in (2, 3, 7, 8, 9, 15, 17, 31, 33, 65, 127, 257):
            merges = [(chr(33 + i // 90), chr(33 + i % 90)) for i in range(size)]
            vocabulary = running.gguf_file.byte_level_vocabulary(merges, "gpt-2")
            last = len(vocabulary["tokenizer.ggml.tokens"]) - 2
            path = self.file("odd.gguf", running.constant({last: 5.0}, vocabulary=vocabulary))
            for flags in (("--temperature", 0), ("--top-k", 3), ("--top-p", 0.9),
                          ("--min-p", 0.2)):
                self.assertEqual(self.ids("-m", path, "-p", "a", "-n", 2, *flags,
                                          seed=draw.randrange(99)), [[last, last]], (size, flags))

    def test_c33_parts_of_a_character_have_their_own_bytes(self):
        server = self.serve(running.scripted(list("🧎".encode()), start=1))  # "x" and a newline.
        answer = server.json("/v1/chat/completions", {
            "model": server.model, "messages": [{"role": "user", "content": "x"}],
            "temperature": 0, "logprobs": True, "top_logprobs": 2})["choices"][0]
        entries = answer["logprobs"]["content"]
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertEqual(answer["message"]["content"], "🧎")
        written = [entry["bytes"] for entry in entries]
        self.assertEqual(written[:4], [[240], [159], [167], [142]])
        self.assertEqual(sum((part or [] for part in written), []), list("🧎".encode()))
        for entry in entries:
            self.assertTrue(entry["token"])  # Never an empty name.
            self.assertEqual(len(entry["top_logprobs"]), 2)
            for other in entry["top_logprobs"]:
                self.assertLessEqual(len(other["bytes"] or []), 1)  # Its own alone.
        self.assertEqual(len({entry["token"] for entry in entries}), len(entries))


if __name__ == "__main__":
    running.main()
