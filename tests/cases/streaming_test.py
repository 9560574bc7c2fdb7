#!/usr/bin/env python3
"""Known faults of what a text becomes on its way out: stop strings, bytes that are no characters,
events and their order. The models write what the test says."""

import json
import socket
import subprocess

import running
from running import serving

DONE = "[DONE]"


class StreamingTest(running.CaseTest):
    def serve(self, *texts, flags=()):
        """A server whose model writes these texts, and the prompt of each."""
        content, prompts = running.anthology(*texts)
        server = serving.Served(*flags, model=self.file("served.gguf", content))
        self.addCleanup(server.__exit__)
        return server, prompts

    def whole(self, server, prompt, **fields):
        """Text, finish reason and number of tokens: the same whether streamed or not."""
        body = {"model": server.model, "prompt": prompt, "temperature": 0, "max_tokens": 20,
                **fields}
        answer = server.json("/v1/completions", body)
        status, _, raw = server.ask("/v1/completions", {
            **body, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(status, 200)
        events = serving.events(raw)
        self.assertEqual(events[-1], DONE)
        parts = [json.loads(event) for event in events[:-1]]
        choice = answer["choices"][0]
        self.assertEqual("".join(part["choices"][0]["text"] for part in parts if part["choices"]),
                         choice["text"])
        reasons = [part["choices"][0]["finish_reason"] for part in parts if part["choices"]]
        self.assertEqual(reasons[-1], choice["finish_reason"])
        self.assertEqual(set(reasons[:-1]), {None} if reasons[:-1] else set())
        self.assertEqual(parts[-1]["usage"]["completion_tokens"],
                         answer["usage"]["completion_tokens"])
        return (choice["text"], choice["finish_reason"], answer["usage"]["completion_tokens"])

    def test_c61_text_held_back_for_a_stop_that_does_not_come_is_given_back(self):
        server, (angle, pleas, aab) = self.serve("abc<", "pleas", "aab")
        self.assertEqual(self.whole(server, angle, stop=["<end>"])[:2], ("abc<", "stop"))
        self.assertEqual(self.whole(server, pleas, stop=["assistant"])[:2], ("pleas", "stop"))
        self.assertEqual(self.whole(server, aab, stop=["ab"])[:2], ("a", "stop"))
        self.assertEqual(self.whole(server, aab, stop=["aac"])[:2], ("aab", "stop"))
        # Cut by max_tokens while something is held.
        self.assertEqual(self.whole(server, angle, stop=["c<end"], max_tokens=3),
                         ("abc", "length", 3))
        self.assertEqual(self.whole(server, aab, stop=["aac"], max_tokens=2),
                         ("aa", "length", 2))

    def test_c63_of_several_stops_the_one_complete_first_counts(self):
        server, (one, many) = self.serve([running.XABCY], "xABCy")
        for stops, text in ((["C", "A"], "x"), (["BC", "B"], "xA"), (["ABC", "B"], "xA")):
            for order in (stops, stops[::-1]):
                self.assertEqual(self.whole(server, one, stop=order), (text, "stop", 1), order)
                self.assertEqual(self.whole(server, many, stop=order)[:2], (text, "stop"), order)

    def test_c65_stops_keep_no_borders_and_do_not_look_at_the_prompt(self):
        server, (inside, plain) = self.serve([running.ABC], "hi")
        self.assertEqual(self.whole(server, inside, stop=["b"]), ("a", "stop", 1))
        # The prompt is nothing but this; and the end token's own text is not what is written.
        for stop in ("a", "aa", "<|end|>", "<"):
            self.assertEqual(self.whole(server, plain, stop=[stop]), ("hi", "stop", 3), stop)
        # Nor does the hidden end token shift what a stop cuts off.
        self.assertEqual(self.whole(server, plain, stop=["i"]), ("h", "stop", 2))

    def test_c67_a_stop_is_not_returned_and_its_tokens_are_counted(self):
        server, (text,) = self.serve("aXbYc")
        self.assertEqual(self.whole(server, text, stop=["Y", "X"]), ("a", "stop", 2))
        self.assertEqual(self.whole(server, text, stop=["Yc"]), ("aXb", "stop", 5))

    def test_c69_bytes_that_are_no_characters_are_replaced_and_never_dropped(self):
        cases = ((b"\xf0\x9f\x98", "\ufffd"), (b"\xff", "\ufffd"), (b"\x80", "\ufffd"),
                 (b"\xc0\xaf", "\ufffd" * 2), (b"\xed\xa0\x80", "\ufffd" * 3),
                 (b"\xf4\x90\x80\x80", "\ufffd" * 4), (b"\xf0\x9f\x41", "\ufffdA"))
        server, prompts = self.serve(*[raw for raw, _ in cases])
        for prompt, (raw, text) in zip(prompts, cases):
            self.assertEqual(self.whole(server, prompt), (text, "stop", len(raw) + 1))
            self.assertEqual(self.whole(server, prompt, max_tokens=len(raw)),
                             (text, "length", len(raw)))

    def test_c69_generate_writes_the_same(self):
        content, (prompt,) = running.anthology(b"a\xf0\x9f\x41\xff\xe6\x98")
        path = self.file("bytes.gguf", content)
        how = ("-m", path, "-p", "z" * len(prompt), "--temperature", 0)
        self.assertEqual(self.kvasir("generate", *how).text, "a\ufffdA\ufffd\ufffd\n")
        self.assertEqual(self.kvasir("generate", *how, "--stream").text, "a\ufffdA\ufffd\ufffd\n")
        run = self.kvasir("generate", *how, "--json")
        self.assertEqual(run.json["choices"][0]["text"], "a\ufffdA\ufffd\ufffd")

    def test_c71_bytes_that_are_no_text_never_break_the_json(self):
        server, (cut, split) = self.serve(b"ok\xf0\x9f", b"\xe6a")
        self.assertEqual(self.whole(server, cut)[0], "ok\ufffd")
        answer = server.json("/v1/completions", {"model": server.model, "prompt": split,
                                                 "temperature": 0, "logprobs": 2})
        self.assertEqual(answer["choices"][0]["text"], "\ufffda")
        # In a path, in a body, in the name of a model.
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(b"GET /v1/models/\xff HTTP/1.1\r\nHost: localhost\r\n"
                           b"Connection: close\r\n\r\n")
            reply = b"".join(iter(lambda: client.recv(65536), b""))
        head, _, body = reply.partition(b"\r\n\r\n")
        self.assertRegex(head, rb"\AHTTP/1.1 40[04] ")
        self.assertIn("message", json.loads(body)["error"])
        self.refused_by(server, 400, b'{"model":"\xff","prompt":"a"}')
        self.refused_by(server, 404, {"model": "\ufffd\u0000", "prompt": "a"})

    def test_c71_a_name_that_is_no_text_is_refused_or_replaced(self):
        command = [serving.PROGRAM, "serve", "-m", str(self.file("m.gguf", running.scripted([97]))),
                   "--port", "0", "--alias", b"\xff"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            line = process.stderr.readline()
            while line and not line.startswith((b"serving", b"kvasir: error")):
                line = process.stderr.readline()
            if line.startswith(b"serving"):
                port = int(line.rpartition(b":")[2])
                with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                    client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Connection: close\r\n\r\n")
                    reply = b"".join(iter(lambda: client.recv(65536), b""))
                json.loads(reply.partition(b"\r\n\r\n")[2].decode())
            else:
                self.assertIn(b"alias", line)
            process.kill()

    @staticmethod
    def raw(server, path, body):
        """Head and events of a stream, byte by byte as they are sent."""
        text = json.dumps({"model": server.model, "stream": True, **body}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (path.encode(), len(text), text))
            reply = b"".join(iter(lambda: client.recv(65536), b""))
        head, _, rest = reply.partition(b"\r\n\r\n")
        events = b""
        while rest:  # Chunks.
            size, _, rest = rest.partition(b"\r\n")
            events, rest = events + rest[:int(size, 16)], rest[int(size, 16) + 2:]
        return head.decode(), events.decode()

    def test_c73_every_stream_ends_with_done(self):
        server, (long, ended) = self.serve("abcdef", "")
        chat = {"messages": [{"role": "user", "content": ""}]}
        for body in ({"prompt": long, "max_tokens": 1}, {"prompt": long, "max_tokens": 0},
                     {"prompt": ended}, {"prompt": long, "stop": ["a"]}, {"prompt": long},
                     {**chat, "max_tokens": 1}, {**chat, "stop": ["a"]}, chat,
                     {"prompt": long, "regex": ""}):
            path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
            head, events = self.raw(server, path, {"temperature": 0, **body})
            self.assertIn("HTTP/1.1 200", head, events)
            self.assertRegex(head, "(?i)content-type: text/event-stream")
            self.assertTrue(events.endswith("data: [DONE]\n\n"), events)
            parts = events.split("\n\n")
            self.assertEqual(parts.pop(), "")
            self.assertEqual(events.count(DONE), 1)
            for part in parts[:-1]:
                self.assertTrue(part.startswith("data: {"), part)
                self.assertNotIn("error", json.loads(part[len("data: "):]))

    def check_order(self, parts, n, usage):
        for index in range(n):
            own = [part["choices"][0] for part in parts
                   if part["choices"] and part["choices"][0]["index"] == index]
            self.assertEqual(own[0]["delta"].get("role"), "assistant")
            self.assertEqual(own[-1]["delta"], {})
            self.assertIn(own[-1]["finish_reason"], ("stop", "length"))
            for choice in own[:-1]:
                self.assertIsNone(choice["finish_reason"])
            for choice in own[1:-1]:
                self.assertEqual(list(choice["delta"]), ["content"])
        self.assertEqual([i for i, part in enumerate(parts) if not part["choices"]],
                         [len(parts) - 1] if usage else [])

    def test_c75_events_come_in_the_order_that_clients_expect(self):
        server, _ = self.serve("abc")
        for n in (1, 2):
            for usage in (False, True):
                body = {"model": server.model, "messages": [{"role": "user", "content": ""}],
                        "temperature": 0, "stream": True, "n": n, "max_tokens": 5}
                if usage:
                    body["stream_options"] = {"include_usage": True}
                _, _, raw = server.ask("/v1/chat/completions", body)
                events = serving.events(raw)
                self.assertEqual(events.pop(), DONE)
                self.check_order(list(map(json.loads, events)), n, usage)


if __name__ == "__main__":
    running.main()
