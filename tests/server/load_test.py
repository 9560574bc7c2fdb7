#!/usr/bin/env python3
"""A thousand streams at once: no event lost, doubled or out of order, and memory stays flat.

KVASIR_LOAD_SECONDS (20) says how long new streams are begun; KVASIR_LOAD_STREAMS (1000) how many
are open at a time.
"""

import asyncio
import json
import os
import resource
import time
import unittest

import serving

SECONDS = float(os.environ.get("KVASIR_LOAD_SECONDS", "20"))
STREAMS = int(os.environ.get("KVASIR_LOAD_STREAMS", "1000"))
KINDS = 16
MIB = 1024


def request_bytes(server, kind):
    body = json.dumps({"model": server.model, "prompt": "春风"[:1 + kind % 2], "seed": kind,
                       "max_tokens": 100 + kind, "temperature": 1.5, "stream": True,
                       "logprobs": kind % 3}).encode()
    return (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body


def unchunk(text):
    parts = []
    while text:
        size, _, text = text.partition(b"\r\n")
        length = int(size, 16)
        parts.append(text[:length])
        text = text[length + 2:]
    return b"".join(parts)


class LoadTest(unittest.TestCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = STREAMS + 200
        if hard != resource.RLIM_INFINITY and hard < wanted:
            self.skipTest(f"the system allows only {hard} open files, {wanted} are needed")
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    def test_streams(self):
        # All in one batch, so that all are being written at once.
        with serving.Served("--max-batch", STREAMS, "--step-tokens", 2 * STREAMS,
                            "--busy-step-tokens", 2 * STREAMS, "--max-waiting", 2 * STREAMS,
                            "--no-access-log", "--drain-seconds", 1) as server:
            asyncio.run(self.run_load(server))
            self.assertIsNone(server.process.poll())

    async def stream(self, server, kind):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request_bytes(server, kind))
        text = await reader.read(-1)
        writer.close()
        head, _, body = text.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200"), text[:500])
        return serving.events(unchunk(body))

    async def run_load(self, server):
        expected = [await self.stream(server, kind) for kind in range(KINDS)]
        for kind, seen in enumerate(expected):
            self.assertEqual(seen[-1], "[DONE]")
            self.assertGreater(len(seen), 2, kind)
        end = time.monotonic() + SECONDS
        count, most_open, memory = 0, 0, []

        async def worker(number):
            nonlocal count
            while time.monotonic() < end or count < STREAMS:
                kind = (number + count) % KINDS
                seen = await self.stream(server, kind)
                self.assertEqual(seen, expected[kind])
                count += 1

        async def watch():
            nonlocal most_open
            while time.monotonic() < end:
                await asyncio.sleep(min(1, SECONDS / 20))
                memory.append(server.memory_kib())
                metrics = await asyncio.to_thread(server.ask, "/metrics")
                text = metrics[2].decode()
                most_open = max(most_open, int(text.split("\nkvasir_connections_open ")[1].split(
                    "\n", 1)[0]))

        await asyncio.gather(watch(), *(worker(number) for number in range(STREAMS)))
        print(f"{count} streams, {most_open} connections at once, memory "
              f"{memory[len(memory) // 2] / MIB:.1f} to {memory[-1] / MIB:.1f} MiB")
        self.assertGreaterEqual(count, STREAMS)
        self.assertGreaterEqual(most_open, STREAMS)
        # From the middle on nothing grows, but for what an allocator keeps.
        self.assertLess(memory[-1], memory[len(memory) // 2] * 1.1 + 16 * MIB, memory)


if __name__ == "__main__":
    serving.main()
