#!/usr/bin/env python3
"""Two servers with one Redis behind HAProxy, set up by packaging/operate: texts that begin alike
meet at one server, the other knows their blocks from the store, and one that is killed takes its
own streams with it only. Run by ./dev nightly: HAProxy is needed."""

import http.client
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import serving
import store_test

OPERATE = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "operate"
HEADS = ["春", "风", "花", "月", "江", "山", "白", "日"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Balanced:
    """HAProxy with the configuration that is shipped, but for its ports."""

    def __init__(self, folder, servers):
        self.port = free_port()
        text = (OPERATE / "haproxy.cfg").read_text(encoding="utf-8")
        for shipped, ours in zip((8080, 8081, 8082), (self.port, *(s.port for s in servers))):
            assert text.count(f"127.0.0.1:{shipped}") == 1
            text = text.replace(f"127.0.0.1:{shipped}", f"127.0.0.1:{ours}")
        path = pathlib.Path(folder) / "haproxy.cfg"
        path.write_text(text, encoding="utf-8")
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(path)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        store_test.wait_for(lambda: self.ask("春", max_tokens=1)[0] == 200, "HAProxy")

    def begin(self, prompt, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = {"model": "tiny", **store_test.question(prompt=prompt), **fields}
        connection.request("POST", "/v1/completions", json.dumps(body),
                           {"Content-Type": "application/json", "Connection": "close"})
        return connection.getresponse()

    def ask(self, prompt, **fields):
        try:
            reply = self.begin(prompt, **fields)
            return reply.status, reply.read()
        except OSError:
            return None, b""

    def end(self):
        self.process.terminate()
        self.process.wait(30)


class ReplicasTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        redis = store_test.RedisServer(folder.name)
        self.addCleanup(redis.end)
        self.servers = []
        for _ in range(2):
            server = serving.Served("--alias", "tiny", "--store",
                                    f"redis://127.0.0.1:{redis.port}")
            self.addCleanup(server.__exit__)
            self.servers.append(server)
        self.proxy = Balanced(folder.name, self.servers)
        self.addCleanup(self.proxy.end)

    def accepted(self):
        return [store_test.metric(server, "requests_accepted_total") for server in self.servers]

    def test_texts_that_begin_alike_meet(self):
        for head in HEADS:
            before = self.accepted()
            start = head * 90  # 270 bytes.
            for tail in range(6):
                self.assertEqual(self.proxy.ask(start + HEADS[tail], max_tokens=2)[0], 200)
            grown = [b - a for a, b in zip(before, self.accepted())]
            self.assertEqual(sorted(grown), [0, 6], head)
        self.assertTrue(all(count > 0 for count in self.accepted()), "one server gets it all")

    def test_what_one_computed_the_other_has(self):
        status, text = self.proxy.ask(store_test.PROMPT)
        self.assertEqual(status, 200)
        store_test.wait_for(
            lambda: sum(store_test.metric(server, "store_written_blocks_total")
                        for server in self.servers) >= store_test.STORED // 16, "the store")
        answers = [store_test.answer(server) for server in self.servers]
        self.assertTrue(all(cached >= store_test.STORED for _, cached in answers), answers)
        for choices, _ in answers:
            self.assertEqual(choices, json.loads(text)["choices"])

    def test_one_is_killed_while_both_write(self):
        whole = {head: self.proxy.ask(head * 90, max_tokens=100, stream=True)[1] for head in HEADS}
        victim = self.servers[0]
        others = set()  # What the living server writes.
        for head in HEADS:
            before = self.accepted()
            self.proxy.ask(head * 90, max_tokens=1)
            if self.accepted()[1] > before[1]:
                others.add(head)
        streams = {head: self.proxy.begin(head * 90, max_tokens=100, stream=True)
                   for head in HEADS}
        firsts = {head: streams[head].read(1) for head in HEADS}
        victim.process.send_signal(signal.SIGKILL)
        lost = []
        for head, stream in streams.items():
            try:
                text = firsts[head] + stream.read()
            except (OSError, http.client.HTTPException):
                text = b""
            if self.normal(text) != self.normal(whole[head]):
                lost.append(head)
        self.assertTrue(others)
        self.assertFalse(others & set(lost), "streams of the living server were lost")
        time.sleep(2.5)  # The checks of the configuration see that it is gone.
        for head in HEADS:
            status, text = self.proxy.ask(head * 90, max_tokens=100, stream=True)
            self.assertEqual(status, 200)
            self.assertEqual(self.normal(text), self.normal(whole[head]), head)

    @staticmethod
    def normal(stream):
        """A stream's choices, without the ids and times of answers."""
        return [json.loads(event)["choices"] for event in serving.events(stream)
                if event != "[DONE]"] + [stream.endswith(b"data: [DONE]\n\n")]


if __name__ == "__main__":
    serving.main()
