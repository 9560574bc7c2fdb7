#!/usr/bin/env python3
"""Known faults of servers: requests that are wrong, too large, too slow or no longer wanted."""

import json
import random
import re
import socket
import time

import running
from running import serving

PATH = "/v1/completions"
POST = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
        b"Connection: close\r\n")
JSON = b"application/json"


def strict(text):
    """What Python's reader makes of it, if it is JSON as its standard says; else ValueError."""
    def no_constant(name):
        raise ValueError(name)

    def once(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name twice")
        return dict(pairs)

    def finite(number):
        value = float(number)
        if value in (float("inf"), -float("inf")):
            raise ValueError(number)
        return value
    value = json.loads(text.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=once,
                       parse_float=finite)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # No lone surrogate.
    return value


class RequestsTest(running.CaseTest):
    def serve(self, *flags, model=None):
        server = serving.Served(*flags, model=model)
        self.addCleanup(server.__exit__)
        return server

    def talk(self, server, *parts):
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
            try:
                for part in parts:
                    client.sendall(part)
            except OSError:
                pass  # It has said what it had to say.
            reply = b""
            try:
                for more in iter(lambda: client.recv(65536), b""):
                    reply += more
            except ConnectionResetError:
                pass
        return reply

    def metric(self, server, name):
        _, _, text = server.ask("/metrics")
        return float(re.search(rf"^kvasir_{name} (\S+)$", text.decode(), re.M)[1])

    def until(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_c77_max_tokens_is_a_count_or_absent(self):
        server = self.serve()
        for path, body in ((PATH, {"prompt": "春"}),
                           ("/v1/chat/completions",
                            {"messages": [{"role": "user", "content": "春"}]})):
            body = {"model": server.model, "seed": 1, **body}
            for wrong in (-1, -2, 1.5, "5", True, [5], 2**64, 1e18):
                error = self.refused_by(server, 400, {**body, "max_tokens": wrong}, path)
                self.assertEqual(error["param"], "max_tokens", wrong)
            absent = server.json(path, body)
            self.assertEqual(server.json(path, {**body, "max_tokens": None})["choices"],
                             absent["choices"])
            self.assertEqual(server.json(path, {**body, "max_tokens": 1})["usage"]
                             ["completion_tokens"], 1)
            # As many as there is room for; beyond all sense it names what is allowed.
            usage = server.json(path, {**body, "max_tokens": 2**31})["usage"]
            self.assertEqual(usage["total_tokens"], serving.CONTEXT)
            error = self.refused_by(server, 400, {**body, "max_tokens": 10**18}, path)
            self.assertRegex(error["message"], r"10{18}: .* to \d+\Z")
        none = server.complete(prompt="春", max_tokens=0)
        self.assertEqual((none["choices"][0]["text"], none["choices"][0]["finish_reason"]),
                         ("", "length"))
        self.refused_by(server, 400, {**body, "max_tokens": 3, "max_completion_tokens": 4}, path)

    def test_c77_a_prompt_too_long_is_told_with_the_true_numbers(self):
        server = self.serve()
        for length in (serving.CONTEXT + 1, 5000):
            error = self.refused_by(server, 400, {"model": server.model, "prompt": "春" * length})
            self.assertIn(str(serving.CONTEXT), error["message"])
            self.assertIn(str(length), error["message"])
            self.assertNotRegex(error["message"], r"(?<!\w)-\d")
        full = server.complete(prompt="春" * serving.CONTEXT, max_tokens=5)
        self.assertEqual(full["usage"]["completion_tokens"], 0)
        self.assertEqual(full["choices"][0]["finish_reason"], "length")

    def test_c79_malformed_json_is_the_clients_fault(self):
        server = self.serve()
        good = json.dumps({"model": server.model, "prompt": "a", "max_tokens": 1}).encode()
        for body in (b"", b" ", good + b"trailing", good + good, good[:-1], b" \xef\xbb\xbf" + good,
                     b'{"model":"m","prompt":"a","prompt":"b"}', b'{"prompt":"\\ud800"}',
                     b'{"prompt":"\x01"}', b'{"a":01}', b'{"a":NaN}', b"NaN", b"Infinity",
                     b'{"a":+1}', b'{"a":.5}', b'{"a":1.}', b'{"a":1e}', b'{"a":0x10}',
                     b"{'a':1}", b"{a:1}", b'{"a":1,}', b"[1,]", b"[", b"]", b"{", b"}", b'{"a"}',
                     b'{"a":}', b'{:1}', b'{"a" 1}', b'"', b'"\\x"', b'"\\u12"', b"tru", b"nul",
                     b"True", b"// c\n{}", b"/* */{}", b"\xff", b"{}\x00", b"\x00",
                     b"[" * 100000, b'{"a":' * 100000, good.decode().encode("utf-16")):
            error = self.refused_by(server, 400, body)
            self.assertEqual(error["type"], "invalid_request_error")
        for before in (b"", b"\t\r\n ", b"\xef\xbb\xbf"):  # A byte order mark says nothing.
            self.assertEqual(server.ask(PATH, before + good + b" \r\n")[0], 200)

    def test_c79_bodies_changed_at_random_are_read_as_the_standard_says(self):
        server = self.serve()
        seed = 79
        draw = random.Random(seed)
        base = ('{"text":"a\\u00e9\\n\\"\U0001f409","add_bos":false,"more":[1,-2.5e3,null,'
                '{"x":[true,""]}]}').encode()
        pieces = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"0", b"-", b"e", b"\x00", b" ",
                  b"\xe9", b"\xf0\x9f", b"null", b"\\u", b"\\ud83d"]
        read = refused = 0
        connection = server.connection()
        for trial in range(600):
            body = bytearray(base)
            for _ in range(draw.randrange(1, 3)):
                at = draw.randrange(len(body))
                body[at:at + draw.randrange(0, 3)] = draw.choice(pieces)
            try:
                value = strict(bytes(body))
                valid = isinstance(value, dict)
            except (ValueError, RecursionError):
                valid = False
            connection.request("POST", "/tokenize", bytes(body),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            document = json.loads(reply.read())
            # "more" is no field of it, so that what can be read is refused too, as such.
            self.assertEqual(reply.status, 400, (seed, trial, body))
            self.assertEqual(document["error"]["code"] != "invalid_json", valid,
                             (seed, trial, body, document))
            read, refused = read + valid, refused + (not valid)
        connection.close()
        self.assertGreater(min(read, refused), 50)

    def test_c81_what_cannot_be_enforced_is_never_answered(self):
        server = self.serve()

        def schema(value):
            return {"response_format": {"type": "json_schema",
                                        "json_schema": {"name": "n", "schema": value}}}
        for fields, why in ((schema({"uniqueItems": True}), "uniqueItems"),
                            (schema({"pattern": "("}), r"'\)'"),
                            (schema({"$ref": "#/$defs/none"}), "nowhere"),
                            (schema({"$ref": "https://x.test/s"}), "fetched"),
                            (schema({"type": "nonsense"}), "nonsense"),
                            ({"response_format": {"type": "nonsense"}}, "nonsense"),
                            ({"response_format": {"type": "json_schema"}}, "json_schema"),
                            ({"grammar": 'root ::= "a', **schema({})}, "grammar"),
                            ({"grammar": "root ::= foo"}, "foo"),
                            ({"regex": "("}, r"'\)'"), ({"regex": "a^b"}, "no text"),
                            ({"guided_json": {}}, "guided_json")):
            body = {"model": server.model, "prompt": "春", "max_tokens": 8, **fields}
            error = self.refused_by(server, 400, body)
            self.assertRegex(error["message"], why)
            self.refused_by(server, 400, {**body, "stream": True})
        for fields in ({"response_format": {"type": "json_object"}}, schema({"type": "object"})):
            text = server.complete(prompt="春", max_tokens=8, temperature=2, seed=1,
                                   **fields)["choices"][0]["text"]
            self.assertTrue(text.startswith("{"), text)

    def send(self, server, **fields):
        body = json.dumps({"model": server.model, **fields}).encode()
        client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.addCleanup(client.close)
        client.sendall(POST % JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return client

    def test_c83_requests_of_clients_that_left_the_queue_never_run(self):
        server = self.serve("--max-batch", "1", model=running.tiny("long", 20000))
        busy = self.send(server, prompt="春", max_tokens=19000, stream=True, temperature=2)
        busy.recv(1000)
        waiting = [self.send(server, prompt="花" * 100, max_tokens=2) for _ in range(5)]
        self.until(lambda: self.metric(server, "requests_active") == 6)
        for client in waiting[:4]:
            client.close()
        self.until(lambda: self.metric(server, "requests_active") == 2)
        busy.close()
        self.assertIn(b"HTTP/1.1 200", waiting[4].recv(1000))
        self.until(lambda: self.metric(server, "requests_active") == 0)
        # Prompts that were started: of the busy one, and of the one that waited.
        self.assertEqual(self.metric(server, "prompt_tokens_total"), 101)
        self.assertEqual(self.metric(server, "clients_vanished_total"), 5)

    def test_c83_a_client_that_leaves_ends_the_reading_of_its_prompt(self):
        server = self.serve("--step-tokens", "32", model=running.tiny("long", 20000))
        for _ in range(3):
            client = self.send(server, prompt="春风" * 9500, max_tokens=1)
            self.until(lambda: self.metric(server, "requests_active") > 0)
            client.close()
            self.until(lambda: self.metric(server, "requests_active") == 0)
        self.assertLess(self.metric(server, "computed_positions_total"), 19000)
        self.assertEqual(server.ask("/health")[0], 200)

    def test_c85_a_body_over_the_limit_is_refused_however_it_is_announced(self):
        server = self.serve("--max-body", "3000", "--request-seconds", "2")
        before = server.memory_kib()
        many = b"x" * 3001
        for parts in ((b"Content-Length: 42949672960\r\n\r\n",),
                      (b"Content-Length: 18446744073709551615\r\n\r\n", many),
                      (b"Content-Length: 3001\r\n\r\n", many),
                      (b"Transfer-Encoding: chunked\r\n\r\nbb9\r\n" + many + b"\r\n0\r\n\r\n",),
                      (b"Transfer-Encoding: chunked\r\n\r\n",
                       b"".join(b"64\r\n" + many[:100] + b"\r\n" for _ in range(31)))):
            reply = self.talk(server, POST % JSON, *parts)
            self.assertRegex(reply, rb"\AHTTP/1.1 413 ", parts[0][:60])
            self.assertEqual(server.ask("/health")[0], 200)
        self.assertLess(server.memory_kib() - before, 64 * 1024)
        # At the limit it is a body like any other, of whatever length its chunks are.
        body = json.dumps({"model": server.model, "prompt": "a", "max_tokens": 1}).encode()
        body += b" " * (3000 - len(body))
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        for tail in (b"Content-Length: 3000\r\n\r\n" + body,
                     b"Transfer-Encoding: chunked\r\n\r\n" + chunks):
            self.assertRegex(self.talk(server, POST % JSON + tail), rb"\AHTTP/1.1 200 ")

    def test_c85_no_type_of_body_has_a_limit_of_its_own(self):
        server = self.serve()
        reply = self.talk(server, POST % b"application/x-www-form-urlencoded"
                          + b"Content-Length: 9000\r\n\r\n" + b"a" * 9000)
        self.assertRegex(reply, rb"\AHTTP/1.1 415 ")
        self.assertEqual(server.ask("/tokenize", {"text": "a" * 9000})[0], 200)

    def test_c85_a_body_that_does_not_come_is_not_waited_for(self):
        server = self.serve("--request-seconds", "2")
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as idle:
            idle.sendall(POST % JSON + b'Content-Length: 100\r\n\r\n{"mod')
            self.assertEqual(server.complete(prompt="a", max_tokens=1)["usage"]
                             ["completion_tokens"], 1)
            self.assertRegex(idle.recv(65536), rb"\AHTTP/1.1 408 ")

    def test_c87_lines_and_headers_without_end_take_no_memory(self):
        server = self.serve()
        before = server.memory_kib()
        endless = b"x" * (1 << 20)
        for start in (b"", b"GET /", b"GET / HTTP/1.1\r\nX-Long: "):
            for _ in range(5):
                self.talk(server, start, *[endless] * 16)
        flood = b"".join(b"X-%d: y\r\n" % i for i in range(10000))
        self.assertRegex(self.talk(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n", flood,
                                   b"\r\n"), rb"\AHTTP/1.1 431 ")
        self.assertLess(server.memory_kib() - before, 64 * 1024)
        self.assertEqual(server.ask("/health")[0], 200)

    def test_c87_clients_that_send_a_byte_now_and_then_are_cut_off(self):
        server = self.serve("--request-seconds", "2")
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=20)
                for _ in range(50)]
        for client in slow:
            self.addCleanup(client.close)
            client.sendall(b"G")
        self.assertEqual(server.complete(prompt="a", max_tokens=1)["usage"]["completion_tokens"], 1)
        for client in slow:
            self.assertIn(b" 408 ", client.recv(65536))


if __name__ == "__main__":
    running.main()
