#!/usr/bin/env python3
"""Every open, read, write, sync, rename and mmap of every command that has any fails in turn: the
program says so in one line, or has no need of what failed; no half file is left, and the next run
works. Of the server every accept, receive and send does: other clients see nothing of it.

FAILING_CALLS is the library that makes them fail (failing_calls.cc).
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(TESTS / "cli"), str(TESTS / "server")]

import program  # pylint: disable=wrong-import-position
import serving  # pylint: disable=wrong-import-position

FILES = ("open", "read", "write", "sync", "rename", "mmap", "resize")
MOST = 200  # Calls of one kind; more would be a fault of the test.
PROMPT = "春风花月" * 5


class CallsTest(program.CliTest):
    def setUp(self):
        super().setUp()
        self.folder = self.home / "files"  # Calls are counted below it alone.
        self.folder.mkdir()
        self.model = shutil.copy(program.SHARED / "tiny.gguf", self.folder / "tiny.gguf")
        self.fired = 0

    def run_failing(self, call, at, *arguments):
        """The run, and whether a call was made to fail in it."""
        told = self.home / "told"
        told.unlink(missing_ok=True)
        settings = {"LD_PRELOAD": os.environ["FAILING_CALLS"], "FAIL_CALL": call, "FAIL_AT": at,
                    "FAIL_UNDER": str(self.folder), "FAIL_TOLD": str(told)}
        done = subprocess.run([program.PROGRAM, *map(os.fsencode, map(str, arguments))],
                              capture_output=True, cwd=self.home, timeout=60, check=False,
                              env={**self.environment(), **settings})
        return program.Run(done), told.exists()

    def content(self):
        """Every file below the folder, by name."""
        return {str(path.relative_to(self.folder)): path.read_bytes()
                for path in self.folder.rglob("*") if path.is_file()}

    def sweep(self, arguments, outputs, aside=(), same_output=True):
        """`outputs`: names of what the command writes. After each fault each of these is as it was
        before or as it is to be, nothing else has come, and a run without a fault makes it whole.
        aside: folders of what it writes besides, with times in it. same_output: on its standard
        output, too."""
        before = self.content()
        whole = self.kvasir(*arguments)
        after = self.content()
        for call in FILES:
            for at in [text for n in range(MOST) for text in (str(n), f"{n}+")]:
                self.restore(before)
                run, fired = self.run_failing(call, at, *arguments)
                if not fired:
                    break
                self.fired += 1
                place = (arguments[0], call, at, run.err)
                self.assertEqual(run.status, 1, place)
                self.assertRegex(run.err, r"(?m)^kvasir: error: [^\n]+$", place)
                self.assertEqual(run.err.count("kvasir: error:"), 1, place)
                self.check_files(before, after, {*outputs, *aside}, place)
                if "+" not in at:
                    resume = (self.folder / "ckpt" / "last.kvckpt").exists()
                    again = self.kvasir(*arguments, *(["--resume"] if resume else []))
                    if same_output:
                        self.assertEqual(again.out, whole.out, place)
                    for name in outputs:
                        self.assertEqual(self.content()[name], after[name], place)
            else:
                self.fail(f"{arguments[0]}: more than {MOST} calls of {call}")

    def restore(self, before):
        for name in self.content().keys() - before.keys():
            (self.folder / name).unlink()
        for name, content in before.items():
            if (self.folder / name).read_bytes() != content:
                (self.folder / name).write_bytes(content)

    def check_files(self, before, after, expected, place):
        now = self.content()
        self.assertLessEqual(before.keys(), now.keys(), place)
        for name in now.keys() - before.keys():
            self.assertTrue(name in expected or name.split("/")[0] in expected, (name, *place))
        for name, content in now.items():
            if name.split("/")[0] not in expected - {name}:
                allowed = [files[name] for files in (before, after) if name in files]
                self.assertTrue(content in allowed, (name, *place))

    def one_thread(self, arguments):
        return arguments

    def test_generate_loads_a_model(self):
        self.sweep(("generate", "-p", PROMPT, "-n", 4, "--seed", 1, "--threads", 1), ())
        self.assertGreater(self.fired, 2)

    def test_convert_writes_a_model(self):
        out = self.folder / "out.gguf"
        for old in (False, True):  # Beside nothing, and over an older file.
            if old:
                out.write_bytes(b"old")
            self.sweep(("convert", self.model, out, "--dtype", "f16"), ("out.gguf",))
        self.assertGreater(self.fired, 10)

    def test_logits_are_written(self):
        self.sweep(("logits", "-p", PROMPT, "--threads", 1, "--out", self.folder / "x.npy"),
                   ("x.npy",))
        self.assertGreater(self.fired, 5)

    def test_sessions_are_saved_and_loaded(self):
        session = self.folder / "s"
        how = ("--threads", 1, "-n", 5)
        self.sweep(("generate", "-p", PROMPT, "--seed", 3, *how, "--save-session", session), ("s",))
        self.kvasir("generate", "-p", PROMPT, "--seed", 3, *how, "--save-session", session)
        self.sweep(("generate", *how, "--load-session", session), ())
        self.assertGreater(self.fired, 8)

    def test_a_session_goes_on_in_its_own_file(self):
        session = self.folder / "s"
        how = ("--threads", 1, "-n", 5)
        self.kvasir("generate", "-p", PROMPT, "--seed", 3, *how, "--save-session", session)
        before = session.read_bytes()
        goes_on = ("generate", *how, "--load-session", session, "--save-session", session)
        for call in FILES:
            for at in map(str, range(MOST)):
                session.write_bytes(before)
                run, fired = self.run_failing(call, at, *goes_on)
                if not fired:
                    break
                self.fired += 1
                self.assertEqual(run.status, 1, (call, at, run.err))
                self.kvasir("generate", *how, "--load-session", session)
        self.assertGreater(self.fired, 8)

    def test_train_saves_model_checkpoint_and_report(self):
        text = self.folder / "text"
        text.write_text("春风花月江山水。\n" * 12, encoding="utf-8")
        self.sweep(("train", text, "-o", self.folder / "m.gguf", "--log", self.home / "log",
                    "--layers", 1, "--heads", 1, "--dim", 8, "--context", 8, "--batch", 2,
                    "--shards", 1, "--steps", 2, "--warmup", 1, "--threads", 1, "--val-share", 0,
                    "--checkpoint", self.folder / "ckpt", "--checkpoint-every", 1),
                   ("m.gguf",), aside=("m.gguf.report", "ckpt"), same_output=False)
        self.assertGreater(self.fired, 20)

    def test_a_store_costs_speed_and_never_an_answer(self):
        store = self.folder / "store"
        plain = ("generate", "-p", PROMPT, "-n", 4, "--seed", 1, "--threads", 1)
        expected = self.kvasir(*plain).out
        for call in FILES:
            for at in [text for n in range(MOST) for text in (str(n), f"{n}+")]:
                shutil.rmtree(store, ignore_errors=True)
                if at.endswith("+"):  # Once with a store that is there, else with a new one.
                    self.kvasir(*plain, "--store", store)
                run, fired = self.run_failing(call, at, *plain, "--store", store)
                if not fired:
                    break
                self.fired += 1
                place = (call, at, run.err)
                if run.status == 0:
                    self.assertEqual(run.out, expected, place)
                else:
                    self.assertEqual(run.status, 1, place)
                    self.assertRegex(run.err, r"(?m)^kvasir: error: [^\n]+$", place)
                self.assertEqual(self.kvasir(*plain, "--store", store).out, expected, place)
        self.assertGreater(self.fired, 8)

    def test_other_clients_see_nothing_of_one_whose_socket_fails(self):
        body = {"prompt": PROMPT, "max_tokens": 8, "seed": 2, "stream": True}
        for call in ("accept", "receive", "send"):
            for at in range(6):
                told = self.home / "told"
                told.unlink(missing_ok=True)
                os.environ.update(LD_PRELOAD=os.environ["FAILING_CALLS"], FAIL_CALL=call,
                                  FAIL_AT=str(at), FAIL_TOLD=str(told))
                try:
                    server = serving.Served(model=self.model)
                finally:
                    for name in ("LD_PRELOAD", "FAIL_CALL", "FAIL_AT", "FAIL_TOLD"):
                        del os.environ[name]
                with server:
                    answers = []
                    for _ in range(6):
                        try:
                            answers.append(server.ask(
                                "/v1/completions", {**body, "model": server.model}))
                        except OSError:
                            answers.append(None)  # The one.
                        except serving.http.client.HTTPException:
                            answers.append(None)
                    self.assertTrue(told.exists(), (call, at))
                    self.assertLessEqual(answers.count(None), 1, (call, at))
                    texts = {answer[2] for answer in answers if answer}
                    self.assertEqual(len(texts), 1, (call, at))
                    self.assertEqual({answer[0] for answer in answers if answer}, {200})
                    self.assertEqual(json.loads(server.ask("/health")[2]), {"status": "ok"})
                    server.process.terminate()
                    self.assertEqual(server.process.wait(60), 0, (call, at))


if __name__ == "__main__":
    if "FAILING_CALLS" not in os.environ:
        sys.exit("FAILING_CALLS must name the library that makes calls fail")
    serving_main = program.main
    with_server = sys.argv.index("--program")
    serving.PROGRAM = os.path.abspath(sys.argv[with_server + 1])
    serving_main()
