#!/usr/bin/env python3
"""`kvasir serve` as a program: flags, configuration, keys, signals, what it writes."""

import json
import pathlib
import re
import signal
import socket
import subprocess
import unittest

import serving

KEY = "0123456789abcdef"


class ServeTest(unittest.TestCase):
    def path(self, name, text):
        path = serving.SHARED / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def refused(self, status, pattern, *flags):
        done = subprocess.run([serving.PROGRAM, "serve", "-m", serving.SHARED / "tiny.gguf",
                               "--threads", "1", *flags], capture_output=True, timeout=60,
                              check=False)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, error)
        self.assertRegex(error, r"\Akvasir: error: [^\n]+\n(hint: [^\n]+\n)?\Z")
        self.assertRegex(error, pattern)

    def test_wrong_usage(self):
        self.refused(2, "no address", "--host", "nowhere")
        self.refused(2, "port", "--port", "65536")
        self.refused(2, "max-batch", "--max-batch", "0")
        self.refused(1, "nothing-here", "--api-key-file", "/nothing-here")
        self.refused(1, "keys.txt.*line 1", "--api-key-file", self.path("keys.txt", "short\n"))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.refused(1, f"cannot listen on 127.0.0.1 port {port}", "--port", port)

    def test_configuration_files(self):
        good = self.path("good.conf", "# settings\nalias = poet\n\nmax-body=3000\n"
                                      "no-access-log = true\n")
        with serving.Served("--config", good) as server:
            self.assertEqual(server.model, "poet")
            status, _, _ = server.ask("/tokenize", {"text": "a" * 4000})
            self.assertEqual(status, 413)
        with serving.Served("--config", good, "--alias", "other") as server:
            self.assertEqual(server.model, "other")
        for text, pattern in (("alias\n", "line 1.*key = value"),
                              ("\nnonsense = 1\n", "line 2.*no setting 'nonsense'"),
                              ("alias = a\nalias = b\n", "line 2.*twice"),
                              ("port = many\n", "line 1.*port"),
                              ("config = x\n", "line 1.*no setting")):
            self.refused(2, pattern, "--config", self.path("bad.conf", text))
        self.refused(1, "nothing-here", "--config", "/nothing-here")

    def test_same_text_as_generate(self):
        done = subprocess.run(
            [serving.PROGRAM, "generate", "-m", serving.SHARED / "tiny.gguf", "--threads", "1",
             "-p", "春风", "--max-tokens", "50", "--seed", "7", "--temperature", "1.3", "--json"],
            capture_output=True, check=True)
        expected = json.loads(done.stdout)["choices"][0]
        with serving.Served() as server:
            answer = server.complete(prompt="春风", max_tokens=50, seed=7, temperature=1.3,
                                     logprobs=0)
            choice = answer["choices"][0]
            self.assertEqual(choice["text"], expected["text"])
            self.assertEqual(choice["logprobs"]["token_logprobs"], expected["logprobs"])
            self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            again = server.complete(prompt="春风", max_tokens=50, seed=7, temperature=1.3,
                                    logprobs=0)
            self.assertEqual(again["choices"], answer["choices"])

    def test_prefix_cache_is_shared_unless_salted(self):
        prompt = "春风花月江山水人天云日夜雨白青流霜一不上" * 5
        with serving.Served() as server:
            def cached(**fields):
                usage = server.complete(prompt=prompt, max_tokens=1, **fields)["usage"]
                return usage["prompt_tokens_details"]["cached_tokens"]
            self.assertEqual(cached(), 0)
            self.assertGreaterEqual(cached(), 80)
            self.assertEqual(cached(cache_salt="mine"), 0)
            self.assertGreaterEqual(cached(cache_salt="mine"), 80)
            self.assertEqual(cached(cache_salt="theirs"), 0)

    def test_next_tokens(self):
        with serving.Served() as server:
            table = server.json("/kvasir/next", {"prompt": "春", "top": 1000, "temperature": 0.7,
                                                 "top_k": 3})
            self.assertEqual(table["candidates"], 3)
            self.assertAlmostEqual(sum(t["drawn"] for t in table["tokens"]), 1, 6)
            self.assertAlmostEqual(table["shown"], 1, 6)
            scored = server.complete(prompt="春", max_tokens=1, temperature=0, logprobs=5)
            best = scored["choices"][0]["logprobs"]["top_logprobs"][0]
            for token in table["tokens"][:5]:  # Beside these stands the one that was drawn.
                self.assertEqual(best[token["token"]], token["logprob"])

    def test_constraints_hold(self):
        with serving.Served() as server:
            for seed in range(5):
                text = server.complete(prompt="春", regex="[ab]{4}", seed=seed)["choices"][0]
                self.assertRegex(text["text"], r"\A[ab]{4}\Z")
                self.assertEqual(text["finish_reason"], "stop")

    def test_an_answer_goes_on_from_its_given_beginning(self):
        with serving.Served() as server:
            fields = {"prompt": "春", "seed": 5, "max_tokens": 40}
            whole = server.complete(**fields)["choices"][0]["text"]
            for given in (whole[:1], whole[:7]):
                rest = server.complete(answer_prefix=given, **fields)["choices"][0]["text"]
                self.assertEqual((given + rest)[:len(whole)], whole)
            # Under a constraint a character may be written byte by byte: other draws follow then.
            for constraint, pattern in (({"regex": "[春风花月江山]{12}"}, "[春风花月江山]{12}"),
                                        ({"verse": {"form": "wujue"}}, "(.{5}，.{5}。){2}")):
                whole = server.complete(**fields, **constraint)["choices"][0]["text"]
                for given in (whole[:1], whole[:7]):
                    rest = server.complete(answer_prefix=given, **fields, **constraint)
                    self.assertRegex(given + rest["choices"][0]["text"].replace("\n", ""),
                                     rf"\A{pattern}\Z")
            status, _, text = server.ask("/v1/completions", {
                "model": server.model, **fields, "regex": "[春风]{3}", "answer_prefix": "月"})
            self.assertEqual(status, 400)
            self.assertIn("answer_prefix", text.decode())

    def test_the_cache_tells_what_it_keeps(self):
        with serving.Served("--kv", "dtype=f16") as server:
            prompt = "春风花月江山水人天云日夜雨白青流霜一不上" * 2
            for _ in range(3):
                server.complete(prompt=prompt, max_tokens=1)
            cache = server.json("/kvasir/cache")
            self.assertEqual((cache["blocks"], cache["sequences"]), (0, []))
            self.assertEqual(len(cache["kept"]), cache["kept_blocks"])
            self.assertEqual([(b["begin"], b["hits"], b["dtype"], b["holders"])
                              for b in cache["kept"]], [(0, 2, "f16", 0), (16, 2, "f16", 0)])
            other = server.json("/kvasir/cache", {"cache_salt": "other"})
            self.assertEqual(other["kept"], [])

    def test_signals_end_streams_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with serving.Served("--drain-seconds", "0.1") as server:
                connection = server.connection()
                connection.request("POST", "/v1/completions", json.dumps(
                    {"model": server.model, "prompt": "春", "max_tokens": 200, "n": 100,
                     "stream": True, "temperature": 2}), {"Content-Type": "application/json"})
                reply = connection.getresponse()
                reply.read(100)
                server.process.send_signal(number)
                rest = reply.read()
                self.assertTrue(rest.endswith(b"data: [DONE]\n\n"), rest[-300:])
                self.assertEqual(server.process.wait(60), 0)
                connection.close()

    def test_says_nothing_that_others_may_use(self):
        with serving.Served("--api-key-file", self.path("k.txt", KEY + "\n")) as server:
            seen = []
            for path, body in (("/", None), ("/health", None), ("/v1/models", None),
                               ("/nothing", None), ("/v1/completions", b"{")):
                for headers in ({}, {"Authorization": f"Bearer {KEY}"}):
                    _, fields, text = server.ask(path, body, headers)
                    seen.append(str(fields) + text.decode())
            everything = "".join(seen)
            self.assertNotRegex(everything, r"(?i)server:|boost|beast|/tiny\.gguf|/tmp/")
            self.assertNotIn(KEY, everything + "".join(server.log))

    def test_raises_its_limit_of_open_files(self):
        with serving.Served("--max-connections", "1500") as server:
            limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text("ascii")
            soft, hard = re.search(r"Max open files\s+(\d+)\s+(\d+)", limits).groups()
            self.assertGreaterEqual(int(soft), min(1500, int(hard)))

    def test_every_request_has_its_line(self):
        with serving.Served() as server:
            for _ in range(50):
                self.assertEqual(server.ask("/health?q=secret")[0], 200)
        lines = [line for line in server.log if " GET health 200 " in line]
        self.assertEqual(len(lines), 50)
        self.assertNotIn("secret", "".join(server.log))


if __name__ == "__main__":
    serving.main()
