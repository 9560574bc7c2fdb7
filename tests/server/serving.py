"""What the tests of the server share: a running `kvasir serve`, and asking it.

Each *_test.py here: --program KVASIR --tiny-model TINY_MODEL [unittest's arguments]
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM = SHARED = None  # The program, and the folder of the models; set before the tests run.
CONTEXT = 256


class Served:
    """A `kvasir serve` on a free port. Use as a context manager."""

    def __init__(self, *flags, model=None, threads=1):
        environment = {k: v for k, v in os.environ.items() if k != "KVASIR_MODEL"}
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "-m", model or SHARED / "tiny.gguf", "--port", "0", "--threads",
             str(threads), *map(str, flags)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
        self.log = []
        self.port = None
        for line in self.process.stderr:
            self.log.append(line.decode())
            found = re.search(r"^serving '(.*)' at http://.*:(\d+)$", self.log[-1])
            if found:
                self.model, self.port = found[1], int(found[2])
                break
        if self.port is None:
            raise RuntimeError(f"the server did not start: {''.join(self.log)}")
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.reader.join(10)
        self.process.stderr.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=240)

    def ask(self, path, body=None, headers=None):
        """Status, headers and body of one request on a connection of its own."""
        connection = self.connection()
        try:
            if body is None:
                connection.request("GET", path, headers=headers or {})
            else:
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                connection.request("POST", path, text,
                                   {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def json(self, path, body=None):
        """The document of a request that must succeed."""
        status, _, text = self.ask(path, body)
        if status != 200:
            raise AssertionError(f"{path} {body}: {status} {text.decode()}")
        return json.loads(text)

    def complete(self, **fields):
        return self.json("/v1/completions", {"model": self.model, **fields})

    def memory_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

    def cpu_seconds(self):
        """Of processors, since it started."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = fields.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def events(body):
    """The data of each event of a stream, in order."""
    return [part.removeprefix("data: ") for part in body.decode().split("\n\n") if part]


def main():
    global PROGRAM, SHARED  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tiny-model", required=True)
    flags, rest = parser.parse_known_args()
    PROGRAM = os.path.abspath(flags.program)
    with tempfile.TemporaryDirectory() as folder:
        SHARED = pathlib.Path(folder)
        subprocess.run([os.path.abspath(flags.tiny_model), SHARED / "tiny.gguf", str(CONTEXT)],
                       check=True)
        unittest.main(argv=[sys.argv[0], *rest])
