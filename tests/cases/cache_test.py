#!/usr/bin/env python3
"""Known faults of caches: what is reused, evicted, shifted, cancelled or rounded never changes an
answer, or changes it as it is told to."""

import concurrent.futures
import itertools
import json
import pathlib
import random
import socket
import time

import running
from running import serving

TEXT = "春风花月江山水人天云日夜雨白青流霜一不上" * 10


class CacheTest(running.CaseTest):
    def serve(self, *flags, model=None):
        server = serving.Served(*flags, model=model)
        self.addCleanup(server.__exit__)
        self.salts = itertools.count()
        return server

    def cold(self, server, **body):
        """The choices of a request that finds nothing in the cache."""
        answer = server.complete(**body, cache_salt=f"cold {next(self.salts)}")
        self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        return answer["choices"]

    def check_warm(self, server, *prompts):
        """Each in turn, from whatever the ones before have left: the same as cold."""
        hits = []
        for prompt in prompts:
            body = {"prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 3, "seed": 1}
            expected = self.cold(server, **body)
            answer = server.complete(**body)
            self.assertEqual(answer["choices"], expected, len(prompt))
            hits.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
            self.assertLess(hits[-1], len(prompt))  # Its last token at least is computed.
        return hits

    def test_c35_a_prompt_that_is_all_cached_still_has_its_next_token(self):
        server = self.serve()
        for length in (1, 15, 16, 17, 31, 32, 33):
            prompt = TEXT[length:2 * length]
            hits = self.check_warm(server, prompt, prompt)
            self.assertEqual(hits[1], length - 1)
        self.check_warm(server, TEXT[50:82], TEXT[50:66], TEXT[50:65], TEXT[50:67], TEXT[50:82])

    def test_c37_a_prefix_whose_window_is_gone_is_computed_again(self):
        for model, flags in (("grouped", ()), ("tiny", ("--kv", "window=20")),
                             ("grouped", ("--kv", "window=17,sinks=3")),
                             ("tiny", ("--kv", "dtype=int8,window=16;0:full"))):
            path = running.tiny(f"{model}256", 256, architecture={"grouped": "llama"}.get(
                model, "gpt2"))
            server = self.serve(*flags, model=path)
            long, cut = TEXT[:100], TEXT[:60]
            self.check_warm(server, long, long, long, long, cut, long, TEXT[:33] + "a", cut, long)

    def test_c39_cancelled_while_being_read_they_leave_nothing_behind(self):
        server = self.serve("--step-tokens", "8", "--kv-budget", "1MiB")
        seed = 39
        expected = self.cold(server, prompt=TEXT[:40], max_tokens=5, seed=1)

        def leave(number):
            draw = random.Random(seed * 1000 + number)
            length = draw.choice([15, 16, 17, 31, 32, 33, 160])
            start = draw.randrange(40)
            body = json.dumps({"model": server.model, "prompt": TEXT[start:start + length],
                               "max_tokens": 90, "stream": number % 2 == 0}).encode()
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
                time.sleep(draw.uniform(0, 0.05))
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(leave, range(200)))
        deadline = time.monotonic() + 30
        while True:
            metrics = dict(line.split() for line in server.ask("/metrics")[2].decode().splitlines()
                           if line.startswith("kvasir_") and "{" not in line)
            if metrics["kvasir_requests_active"] == "0":
                break
            self.assertLess(time.monotonic(), deadline, seed)
        self.assertEqual(float(metrics["kvasir_cache_live_bytes"]), 0)
        self.assertLessEqual(float(metrics["kvasir_cache_idle_bytes"]), 1 << 20)
        self.assertEqual(server.complete(prompt=TEXT[:40], max_tokens=5, seed=1)["choices"],
                         expected)
        self.assertEqual(self.cold(server, prompt=TEXT[:40], max_tokens=5, seed=1), expected)

    def test_c41_where_a_text_lies_in_the_cache_changes_nothing(self):
        server = self.serve("--kv-budget", "2MiB")
        body = {"prompt": TEXT[7:47], "max_tokens": 20, "logprobs": 5, "seed": 4}
        expected = self.cold(server, **body)
        for length in (31, 32, 33):
            neighbour = {"prompt": TEXT[1:1 + length], "max_tokens": 60, "temperature": 2}
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                other = pool.submit(self.cold, server, **neighbour)  # Holds blocks meanwhile.
                self.assertEqual(self.cold(server, **body), expected)
                other.result()
            self.assertEqual(self.cold(server, **body), expected)  # In what that gave back.

    def test_c43_a_window_holds_however_the_prompt_is_cut(self):
        prompt = TEXT[:30]
        out = pathlib.Path(self.path("out.npy"))
        for name, flags in (("grouped", ()), ("tiny", ("--kv", "window=4")),
                            ("grouped", ("--kv", "window=4,sinks=1"))):
            model = running.tiny(f"{name}48", 48, architecture={"grouped": "llama"}.get(
                name, "gpt2"))
            rows = set()
            for how in ((), *(("--prefill-chunk", n) for n in (1, 3, 4, 5, 17)),
                        ("--no-kv-cache",)):
                self.kvasir("logits", "-m", model, "-p", prompt, "--out", out, *flags, *how)
                rows.add(out.read_bytes())
            self.assertEqual(len(rows), 1, (name, flags))

    def test_c45_rolling_ends_where_it_was_told_to(self):
        for architecture in ("gpt2", "llama"):
            model = running.tiny(f"sixteen_{architecture}", 16, architecture=architecture)
            for length in (1, 8, 15, 16):
                run = self.kvasir("generate", "-m", model, "-p", TEXT[:length], "-n", 100,
                                  "--overflow", "roll", "--seed", 1, "--json")
                self.assertEqual(run.json["usage"]["completion_tokens"], 100)
                stop = self.kvasir("generate", "-m", model, "-p", TEXT[:length], "-n", 100,
                                   "--seed", 1, "--json")
                self.assertEqual(stop.json["usage"]["completion_tokens"], 16 - length)
        # What is kept for ever, beside a window: as much as the window, not more than there is.
        for sinks in (0, 1, 8):
            run = self.kvasir("generate", "-m", model, "-p", "春", "-n", 100, "--overflow", "roll",
                              "--kv", f"window=8,sinks={sinks}", "--seed", 1, "--json")
            self.assertEqual(run.json["usage"]["completion_tokens"], 100)
        for sinks in (15, 16, 999):
            self.refused(2, f"sinks={sinks}", "generate", "-m", model, "-p", "春", "--kv",
                         f"window=8,sinks={sinks}")

    def test_c47_a_text_that_filled_the_context_leaves_the_next_alone(self):
        server = self.serve(model=running.tiny("thirty_two", 32))
        first = {"prompt": TEXT[:10], "max_tokens": 1000, "seed": 1}
        other = {"prompt": "a b", "max_tokens": 5, "seed": 2}
        expected = self.cold(server, **first), self.cold(server, **other)
        self.assertEqual(expected[0][0]["finish_reason"], "length")
        for _ in range(2):
            self.assertEqual(server.complete(**first)["choices"], expected[0])
            self.assertEqual(server.complete(**other)["choices"], expected[1])

    def test_c55_keys_and_values_are_rounded_apart_and_keys_cost_more(self):
        verses = "\n".join(
            "".join(self.kvasir("generate", "-m", BUNDLED, "-p", head, "-n", 60, "--seed", seed,
                                "--temperature", 1).text.split())
            for seed, head in enumerate("春秋山"))
        names = ["k=int8,v=int8", "k=int8,v=int4", "k=int4,v=int8", "k=int4,v=int4"]
        run = self.kvasir("cache", "compare", "-m", BUNDLED, self.path("verses", verses),
                          "--policies", "|".join(["full", *names]), "--json")
        rows = {row["policy"]: row for row in run.json["policies"]}
        self.assertEqual(len(rows), 5, rows)
        eight, value, key, four = (rows[name]["kl_mean"] for name in names)
        self.assertLess(eight, min(value, key))
        self.assertLess(max(value, key), four)
        self.assertGreater(key, 0.98 * value)
        exact, rounded = rows["full"]["perplexity"], rows[names[0]]["perplexity"]
        self.assertLess(abs(rounded / exact - 1), 0.001)

    def test_c59_an_end_token_in_the_prompt_ends_nothing(self):
        path = self.file("ends.gguf", running.gguf_file.gpt2_model(running.VOCABULARY, context=64))
        seen = []
        for chunk in ("8", "1", "64"):
            server = self.serve("--prefill-chunk", chunk, model=path)
            answers = []
            for length in (7, 8, 9, 16, 17):
                for place in (7, 8):
                    prompt = [97 + i % 9 for i in range(length)]
                    prompt[min(place, length) - 1] = running.EOS
                    answer = server.complete(prompt=prompt, max_tokens=3, seed=5, logprobs=2,
                                             logit_bias={str(running.EOS): -100})
                    self.assertEqual(answer["usage"]["completion_tokens"], 3)
                    answers.append(answer["choices"])
            seen.append(answers)
        self.assertEqual(seen[1:], seen[:1] * 2)


BUNDLED = running.TESTS.parent / "models" / "tang-lesson.gguf"

if __name__ == "__main__":
    running.main()
