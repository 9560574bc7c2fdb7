#!/usr/bin/env python3
"""Servers that keep blocks beyond themselves: killed and started again, or side by side with one
Redis server, they answer a known prompt from the store, with the same bytes."""

import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import serving

PROMPT = "春风花月江山白日" * 20  # 160 tokens: 9 complete blocks before the last one.
STORED = 144


def question(seed=5, prompt=PROMPT, **fields):
    return {"prompt": prompt, "max_tokens": 12, "seed": seed, "temperature": 1, "logprobs": 2,
            **fields}


def answer(server, **fields):
    """What of an answer must be the same, and how many tokens of its prompt were cached."""
    reply = server.complete(**question(**fields))
    cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"]
    return reply["choices"], cached


def metric(server, name):
    text = server.ask("/metrics")[2].decode()
    for line in text.splitlines():
        if line.startswith(f"kvasir_{name} "):
            return float(line.split()[1])
    raise AssertionError(f"no kvasir_{name} among the metrics")


def wait_for(condition, what):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


class RedisServer:
    """Debian's, on a free port."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder], stdout=subprocess.DEVNULL)
        wait_for(self.answers, "redis-server")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()


class StoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with serving.Served() as plain:
            self.plain, cached = answer(plain)
            self.assertEqual(cached, 0)
            self.assertEqual(answer(plain), (self.plain, len(PROMPT) - 1))

    def test_killed_and_started_again(self):
        store = ["--store", pathlib.Path(self.folder) / "store"]
        with serving.Served(*store) as server:
            self.assertEqual(answer(server), (self.plain, 0))
            wait_for(lambda: metric(server, "store_written_blocks_total") >= STORED // 16,
                     "the blocks to be written")
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        with serving.Served(*store) as server:
            self.assertEqual(answer(server), (self.plain, STORED))
            self.assertEqual(metric(server, "restored_tokens_total"), STORED)
            self.assertEqual(metric(server, "store_hit_blocks_total"), STORED // 16)
            # Another salt is another tenant.
            self.assertEqual(answer(server, cache_salt="other"), (self.plain, 0))

    def test_damaged_between(self):
        store = pathlib.Path(self.folder) / "store"
        with serving.Served("--store", store) as server:
            answer(server)
        file = store / "data.mdb"
        content = bytearray(file.read_bytes())
        for offset in range(5000, len(content), 1500):
            content[offset] ^= 0x55
        file.write_bytes(content)
        with serving.Served("--store", store) as server:
            self.assertEqual(answer(server)[0], self.plain)

    def redis(self):
        if shutil.which("redis-server") is None:
            print("redis-server is needed", file=sys.stderr)
            sys.exit(77)
        server = RedisServer(self.folder)
        self.addCleanup(server.end)
        return server

    def test_two_servers_share_one_redis(self):
        redis = self.redis()
        store = ["--store", f"redis://127.0.0.1:{redis.port}"]
        with serving.Served(*store) as one, serving.Served(*store) as other:
            self.assertEqual(answer(one), (self.plain, 0))
            wait_for(lambda: metric(one, "store_written_blocks_total") >= STORED // 16,
                     "the blocks to be written")
            self.assertEqual(answer(other), (self.plain, STORED))
            longer = answer(other, prompt=PROMPT + "雨" * 30)
            self.assertEqual(longer[1], len(PROMPT))  # In the other's own cache now.
            # Without its store, a server answers as before.
            redis.end()
            for seed in range(3):
                self.assertEqual(answer(one, seed=seed, prompt="白" * 50 + PROMPT[:seed])[0],
                                 answer(other, seed=seed, prompt="白" * 50 + PROMPT[:seed])[0])
            self.assertEqual(metric(one, "store_up"), 0)
            self.assertGreater(metric(one, "store_faults_total"), 0)

    def test_a_frozen_redis_costs_time_only(self):
        redis = self.redis()
        store = ["--store", f"redis://127.0.0.1:{redis.port}", "--store-patience", "0.2"]
        with serving.Served(*store) as server:
            redis.process.send_signal(signal.SIGSTOP)
            self.assertEqual(answer(server), (self.plain, 0))
            redis.process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    serving.main()
