#!/usr/bin/env python3
"""train: what it writes, the same bits, interruptions, bad texts and settings, full disks."""

import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time

import gguf_file
import program

TRAIN = ("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16", "--batch", "4",
         "--warmup", "2", "--dropout", "0.1")


class TrainTest(program.CliTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(7)
        self.text = self.path("text", "".join(draw.choices("春风花月江山水，。\n", k=900)))
        self.held_out = self.path("held_out", "春风花月，江山水人。\n" * 6)

    def train(self, output, *arguments, **how):
        return self.kvasir("train", self.text, "--val", self.held_out, "-o", self.path(output),
                           *TRAIN, *arguments, **how)

    def content(self, name):
        return (self.home / name).read_bytes()

    def log(self, name):
        """A log's lines, but for the rate, which no two runs share."""
        lines = [line.split("\t") for line in self.content(name).decode().splitlines()]
        return [fields[:4] + fields[5:] for fields in lines]

    def until(self, process, log, step):
        """Waits until the log has that step; fails if the run ends before."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(log) and f"\n{step}\t" in pathlib.Path(log).read_text():
                return
            time.sleep(0.005)
        process.kill()
        self.fail(f"no step {step} in time: {process.communicate()}")

    def interrupted(self, sent, step, *arguments, **how):
        process = subprocess.Popen(
            [program.PROGRAM, "train", self.text, "--val", self.held_out, "-o",
             self.path("cut.gguf"), *TRAIN, "--checkpoint", self.path("ckpt"),
             *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.until(process, self.path("cut.gguf.log"), step)
        process.send_signal(sent)
        out, err = process.communicate(timeout=30)
        return process.returncode, out.decode(), err.decode()

    def test_trains_and_what_it_wrote_runs(self):
        out = self.train("m.gguf", "--steps", 8, "--eval-every", 4, "--json").json
        self.assertEqual((out["steps"], out["stopped"]), (8, False))
        self.assertEqual(out["parameters"], self.kvasir("inspect", self.path("m.gguf"),
                                                        "--json").json["parameters"])
        score = self.kvasir("eval", self.held_out, "--json", "-m", self.path("m.gguf")).json
        self.assertAlmostEqual(score["nll"], out["held_out_nll"], places=9)
        self.kvasir("generate", "-p", "春", "-n", 4, "--seed", 1, "-m", self.path("m.gguf"))
        log = self.content("m.gguf.log").decode().splitlines()
        self.assertEqual((len(log), log[0].split("\t")[0]), (9, "step"))
        self.assertEqual(sorted(os.listdir(self.home)),
                         ["held_out", "m.gguf", "m.gguf.log", "m.gguf.report", "text"])

    def test_the_same_bits_however_it_is_computed(self):
        self.train("a.gguf", "--name", "x", "--steps", 5, "--threads", 1)
        self.train("b.gguf", "--name", "x", "--steps", 5, "--threads", 3)
        self.train("c.gguf", "--name", "x", "--steps", 5, "--micro-batch", 1)
        self.assertEqual(self.content("a.gguf"), self.content("b.gguf"))
        self.assertEqual(self.content("a.gguf"), self.content("c.gguf"))
        self.train("d.gguf", "--name", "x", "--steps", 5, "--seed", 2)
        self.assertNotEqual(self.content("a.gguf"), self.content("d.gguf"))

    def test_signals_save_and_resume_is_the_unbroken_run(self):
        flags = ("--steps", 400, "--eval-every", 20, "--name", "x")
        self.train("whole.gguf", *flags, "--checkpoint", self.path("whole"))
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            status, out, err = self.interrupted(sent, 7, *flags)
            self.assertEqual(status, 0, err)
            self.assertRegex(out, r"\Astopped .* \d+ steps")
            self.assertIn("--resume", out)
            self.assertTrue((self.home / "cut.gguf").exists())
            self.refused(2, "exists", "train", self.text, "-o", self.path("new.gguf"), *TRAIN,
                         "--checkpoint", self.path("ckpt"))
            self.train("cut.gguf", *flags, "--checkpoint", self.path("ckpt"), "--resume")
            self.assertEqual(self.content("cut.gguf"), self.content("whole.gguf"))
            self.assertEqual(self.log("cut.gguf.log"), self.log("whole.gguf.log"))
            shutil.rmtree(self.home / "ckpt")
            (self.home / "cut.gguf.log").unlink()

    def test_a_signal_the_caller_ignores_stays_ignored(self):
        def nohup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        status, out, err = self.interrupted(signal.SIGHUP, 2, "--steps", 60, preexec_fn=nohup)
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"\Atrained .* 60 steps")

    def test_killed_without_a_word_it_goes_on_from_the_checkpoint(self):
        flags = ("--steps", 60, "--eval-every", 30, "--checkpoint-every", 4, "--name", "x")
        status, _, _ = self.interrupted(signal.SIGKILL, 6, *flags)
        self.assertEqual(status, -signal.SIGKILL)
        # What a process leaves that is killed while it writes; and what only looks so.
        gone = subprocess.Popen(["true"])
        gone.wait()
        for name in (f"ckpt/last.kvckpt.tmp{gone.pid}", f"cut.gguf.tmp{gone.pid}",
                     f"ckpt/last.kvckpt.tmp{os.getpid()}", "cut.gguf.tmp1x"):
            self.path(name, "half a file")
        with open(self.path("cut.gguf.log"), "a", encoding="utf-8") as log:
            log.write("7\t1.2")  # A line that was cut.
        self.train("cut.gguf", *flags, "--checkpoint", self.path("ckpt"), "--resume")
        self.train("whole.gguf", *flags)
        self.assertEqual(self.content("cut.gguf"), self.content("whole.gguf"))
        self.assertEqual(self.log("cut.gguf.log"), self.log("whole.gguf.log"))
        self.assertEqual(sorted(x for x in os.listdir(self.home) if ".tmp" in x),
                         ["cut.gguf.tmp1x"])
        self.assertEqual(sorted(os.listdir(self.home / "ckpt")),
                         ["last.kvckpt", f"last.kvckpt.tmp{os.getpid()}"])

    def test_where_a_run_is_stopped_changes_nothing(self):
        # The loss goes up and down, so a measurement more would find another best model.
        flags = ("--steps", 12, "--eval-every", 5, "--lr", 1, "--name", "x")
        whole = self.train("whole.gguf", *flags, "--json").json
        for stop in (1, 4, 5, 7, 11):
            resumed = (*flags, "--checkpoint", self.path(f"ckpt{stop}"))
            out = self.train("z1.gguf", *resumed, "--stop-at", stop).text
            self.assertEqual("not yet measured on held-out text" in out, stop < 5, out)
            self.assertTrue((self.home / "z1.gguf").exists())
            # The best model is in the checkpoint: no output is needed, nor trusted.
            self.path("z1.gguf", "something else")
            again = self.train("z2.gguf", *resumed, "--resume", "--json", "--log",
                               self.path("z1.gguf.log")).json
            self.assertEqual(self.content("z2.gguf"), self.content("whole.gguf"), stop)
            self.assertEqual(self.log("z1.gguf.log"), self.log("whole.gguf.log"), stop)
            for key in ("steps", "stopped", "held_out_nll", "best_step"):
                self.assertEqual(again[key], whole[key], stop)
            self.train("z3.gguf", *resumed, "--resume")  # It has ended: the result once more.
            self.assertEqual(self.content("z3.gguf"), self.content("whole.gguf"), stop)
            self.assertEqual(self.log("z3.gguf.log"), self.log("whole.gguf.log")[:1])
            for name in ("z1.gguf", "z2.gguf", "z3.gguf", "z3.gguf.log"):
                (self.home / name).unlink()

    def test_a_log_that_is_none_is_not_continued(self):
        flags = ("--checkpoint", self.path("ckpt"), "--steps", 6)
        self.train("m.gguf", *flags, "--stop-at", 3)
        notes = self.path("notes", "what I think of it\n1\t2\n")
        before = pathlib.Path(notes).read_bytes()
        self.refused(1, "notes", "train", self.text, "--val", self.held_out, "-o",
                     self.path("m.gguf"), *TRAIN, *flags, "--resume", "--log", notes)
        self.assertEqual(pathlib.Path(notes).read_bytes(), before)
        self.refused(2, "--steps 2 .*3 steps", "train", self.text, "--val", self.held_out, "-o",
                     self.path("m.gguf"), *TRAIN, "--checkpoint", self.path("ckpt"), "--resume",
                     "--steps", 2)

    def test_progress_that_nobody_reads(self):
        with open("/dev/full", "wb") as full:
            subprocess.run([program.PROGRAM, "train", self.text, "--val", self.held_out, "-o",
                            self.path("m.gguf"), *TRAIN, "--steps", "4", "--eval-every", "2"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full,
                           timeout=60, check=True)
        self.assertTrue((self.home / "m.gguf").exists())

    def test_characters_of_the_held_out_text_alone_are_not_drawn(self):
        self.train("m.gguf", "--steps", 2)
        drawn = self.kvasir("generate", "-p", "春", "-n", 12, "--count", 40, "--temperature", 3,
                            "--seed", 1, "-m", self.path("m.gguf")).text
        self.assertNotIn("人", drawn)
        self.assertEqual(set("春风花月江山水，。\n") - set(drawn), set())

    def test_byte_pairs(self):
        draw = random.Random(3)
        words = ["the", "river", "of", "spring", "and", "wind", "naïve", "春风"]
        book = self.path("book", " ".join(draw.choices(words, k=4000)) + ".\n")
        model = self.path("m.gguf")
        def train(*flags):
            return self.kvasir("train", book, "-o", model, *TRAIN, "--steps", 2, *flags,
                               "--json").json["vocab"]
        self.assertEqual(train("--vocab", 280), 280)
        metadata = gguf_file.read_metadata(model)
        self.assertEqual(metadata["tokenizer.ggml.model"], "gpt2")
        self.assertEqual(metadata["tokenizer.ggml.pre"], "gpt-2")
        self.assertEqual(len(metadata["tokenizer.ggml.tokens"]), 280)
        self.assertEqual(len(metadata["tokenizer.ggml.merges"]), 280 - 257)
        self.assertEqual(metadata["tokenizer.ggml.tokens"][-1], "<|endoftext|>")
        first = self.content("m.gguf")
        self.assertEqual(train("--vocab", 280, "--tokenizer", "bpe"), 280)
        self.assertEqual(self.content("m.gguf"), first)
        text = "the naïve rivers, 夏!"
        ids = self.kvasir("tokenize", text, "-m", model).text.split()
        self.assertLess(len(ids), len(text.encode()))
        self.assertEqual(self.kvasir("detokenize", *ids, "-m", model).text, text + "\n")
        self.kvasir("verify", "-m", model, "--trials", 2, "--seed", 1)
        drawn = self.kvasir("generate", "-p", "the", "-n", 30, "--seed", 1, "-m", model).text
        self.assertEqual(set(drawn) & set("xyzXYZ0123456789"), set())  # Bytes the book lacks.
        # Fewer, where no pair occurs twice; characters, where they are asked for.
        self.assertLess(train("--val-share", 0), 4096)
        self.assertEqual(train("--tokenizer", "char", "--val-share", 0),
                         3 + 256 + len(set("".join(words) + " .\n")))
        for flags in (("--vocab", 256), ("--vocab", 1048577), ("--tokenizer", "word"),
                      ("--tokenizer", "char", "--vocab", 300)):
            self.refused(2, flags[-2], "train", book, "-o", model, *flags)

    def test_encodings(self):
        texts = pathlib.Path(self.text).read_text()
        self.train("utf8.gguf", "--steps", 2)
        for encoding, flag in (("gb18030", "gb18030"), ("utf-16", "auto"), ("utf-16le", "utf-16"),
                               ("utf-16be", "utf-16be")):
            for path in (self.text, self.held_out):
                content = pathlib.Path(path).read_text() if path != self.text else texts
                pathlib.Path(path + ".coded").write_bytes(content.encode(encoding))
            self.kvasir("train", self.text + ".coded", "--val", self.held_out + ".coded", "-o",
                        self.path("utf8.gguf.coded"), "--name", "utf8", *TRAIN, "--steps", 2,
                        "--encoding", flag)
            self.assertEqual(self.content("utf8.gguf.coded"), self.content("utf8.gguf"), encoding)
        coded = self.path("gb", texts.encode("gb18030"))
        run = self.refused(1, "gb' is not UTF-8: byte 0x.. at offset", "train", coded, "-o",
                           self.path("m.gguf"))
        self.assertIn("--encoding gb18030", run.err)
        self.refused(1, "text' is UTF-8, not GB18030", "train", coded, self.text, "-o",
                     self.path("m.gguf"), "--encoding", "gb18030")
        self.refused(1, "U.0000 at offset 6", "train", self.path("zero", "春风\0"), "-o",
                     self.path("m.gguf"))
        self.refused(2, "latin1", "train", coded, "-o", self.path("m.gguf"), "--encoding",
                     "latin1")

    def test_bad_texts(self):
        for content, why in (("", "empty"), ("春风" * 8, "16 tokens.*16"),
                             ("春风".encode() + program.INVALID, "UTF-8.*offset 6")):
            path = self.path("bad", content)
            self.refused(1, why, "train", path, "-o", self.path("m.gguf"), *TRAIN)
        for content, why in (("", "empty"), ("春", "at least 2"), (program.INVALID, "UTF-8")):
            path = self.path("bad", content)
            self.refused(1, why, "train", self.text, "--val", path, "-o", self.path("m.gguf"),
                         *TRAIN)
        self.refused(1, "No such file", "train", self.path("none"), "-o", self.path("m.gguf"))
        self.assertEqual([x for x in os.listdir(self.home) if x.startswith("m.gguf")], [])

    def test_bad_settings(self):
        for flag, value in (("--lr", "nan"), ("--lr", "0"), ("--dropout", "1"), ("--steps", "0"),
                            ("--batch", "-1"), ("--seed", "18446744073709551616"), ("--seed", "-1"),
                            ("--context", "0"), ("--dtype", "f8"), ("--arch", "rnn"),
                            ("--shards", "33"), ("--warmup", "1.5"), ("--clip", "-1")):
            self.refused(2, flag, "train", self.text, "-o", self.path("m.gguf"), f"{flag}={value}")
        self.refused(2, "30.*4", "train", self.text, "-o", self.path("m.gguf"), "--dim", 30)
        self.refused(2, "--dim 65536 .*--heads 2 .*32768", "train", self.text, "-o",
                     self.path("m.gguf"), "--dim", 65536, "--heads", 2)
        self.refused(2, "--shards 4 .*--batch, 2", "train", self.text, "-o", self.path("m.gguf"),
                     "--batch", 2, "--shards", 4)
        self.kvasir("train", self.text, "-o", self.path("small.gguf"), "--batch", 2, "--dim", 8,
                    "--context", 8, "--steps", 1)
        for flag in ("-o", "--val", "--log", "--checkpoint"):
            other = () if flag == "-o" else ("-o", self.path("m.gguf"))
            self.refused(2, f"{flag.replace('-o', '--output')} is ''", "train", self.text, *other,
                         flag, "")
        self.refused(2, "--checkpoint", "train", self.text, "-o", self.path("m.gguf"), "--resume")
        self.refused(1, "no checkpoint", "train", self.text, "-o", self.path("m.gguf"), "--resume",
                     "--checkpoint", self.path("none"))

    def test_a_checkpoint_of_another_run(self):
        flags = ("--checkpoint", self.path("ckpt"))
        self.train("m.gguf", "--steps", 3, *flags)
        before = self.content("m.gguf")
        same = ("train", self.text, "--val", self.held_out, "-o", self.path("m.gguf"), *flags,
                "--resume", "--steps", 6, *TRAIN)
        for change in (("--lr", "0.1"), ("--seed", 9), ("--ffn", 24)):
            self.refused(1, "checkpoint|ckpt", *same, *change)
        # Which model is the best depends on these.
        self.refused(1, "--eval-every 250, not 2", *same, "--eval-every", 2)
        other = self.path("other", "人。春风花月，江山水\n" * 6)
        self.refused(1, "another held-out",
                     *(other if part == self.held_out else part for part in same))
        checkpoint = next((self.home / "ckpt").iterdir())
        whole = checkpoint.read_bytes()
        for damaged in (b"", whole[:100], whole[:-1],
                        whole[:-2000] + bytes([whole[-2000] ^ 1]) + whole[-1999:]):
            checkpoint.write_bytes(damaged)
            self.refused(1, "ckpt", *same)
        self.assertEqual(self.content("m.gguf"), before)

    def test_outputs_that_cannot_be_written(self):
        for output, why in (("/dev/full", "no regular file"), (self.path("no/m.gguf"), "No such"),
                            (self.home, "folder"), (self.path("m" * 253), "too long")):
            run = self.refused(1, f"cannot write '{output}': .*{why}", "train", self.text, "-o",
                               output, "--log", self.path("log"), *TRAIN)
            self.assertNotRegex(run.err, r"\.tmp|probe")
        self.assertFalse((self.home / "log").exists())
        run = self.command("train", self.text, "-o", self.path("m.gguf"), *TRAIN, "--steps", 2,
                           "--log", "/dev/full")
        self.assertEqual(run.status, 1)
        self.assertRegex(run.err, "log '/dev/full': No space left")
        self.assertTrue((self.home / "m.gguf").exists())  # The run is worth more than its log.

    def test_outputs_are_no_inputs(self):
        os.symlink(self.text, self.path("link"))
        os.link(self.text, self.path("hard"))
        os.symlink(self.path("m.gguf"), self.path("nowhere"))
        os.mkdir(self.path("ckpt"))
        os.link(self.held_out, self.path("ckpt/last.kvckpt"))
        before = {name: self.content(name) for name in ("text", "held_out")}
        same = "is the same file as"
        for name in ("text", "link", "hard", "./text", "ckpt/../link", "held_out"):
            for flag, other in (("-o", ()), ("--log", ("-o", self.path("m.gguf"))),
                                ("--checkpoint", ("-o", self.path("m.gguf")))):
                self.refused(2, same, "train", self.text, "--val", self.held_out, flag,
                             self.path(name), *other, *TRAIN, "--steps", 1)
        for arguments in (("-o", "m.gguf", "--log", "./m.gguf"), ("-o", "c", "--checkpoint", "c"),
                          ("-o", "m.gguf", "--log", "nowhere"),
                          ("-o", "m.gguf", "--log", "c/last.kvckpt", "--checkpoint", "c"),
                          ("-o", "m.gguf", "--checkpoint", "ckpt", "--resume")):
            self.refused(2, same, "train", self.text, "--val", self.held_out, *arguments, *TRAIN)
        default_log = self.path("book.log", self.content("text"))
        self.refused(2, same, "train", default_log, "-o", self.path("book"), *TRAIN)
        self.assertEqual({name: self.content(name) for name in before}, before)
        self.assertEqual(sorted(os.listdir(self.home)), ["book.log", "ckpt", "hard", "held_out",
                                                         "link", "nowhere", "text"])

    def test_a_disk_that_fills_while_saving(self):
        old = b"the model of last week"
        output = self.path("m.gguf", old)
        run = self.refused(1, "m.gguf'", "train", self.text, "-o", output, *TRAIN, "--steps", 2,
                           file_size=8000)
        self.assertNotIn(".tmp", run.err)
        self.assertEqual(pathlib.Path(output).read_bytes(), old)
        self.assertEqual([x for x in os.listdir(self.home) if ".tmp" in x], [])

    def test_more_memory_than_there_is(self):
        for size in (("--dim", 8192, "--layers", 64, "--heads", 64),
                     ("--batch", 65536, "--micro-batch", 65536, "--context", 128),
                     ("--ffn", 262144, "--dim", 4096, "--heads", 64, "--layers", 100),
                     ("--dim", 65536, "--heads", 1024, "--layers", 512, "--batch", 65536,
                      "--micro-batch", 65536, "--context", 800)):
            run = self.refused(1, r"takes (more than )?[0-9^]+ MiB of memory; there are \d+ MiB",
                               "train", self.text, "-o", self.path("m.gguf"), *size)
            self.assertIn("--micro-batch", run.err)

    def test_whatever_memory_there_is(self):
        def limited(mebibytes, *arguments):
            limit = mebibytes << 20
            return subprocess.run(
                [program.PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        if limited(4000, "train", "--help").returncode != 0:
            self.skipTest("a sanitizer needs the addresses")
        ends = set()
        for mebibytes in (*range(16, 160, 8), 400):
            run = limited(mebibytes, "train", self.text, "-o", self.path("m.gguf"), "--dim", 128,
                          "--context", 64, "--batch", 8, "--steps", 1, "--threads", 2)
            if run.returncode == 127 or b"shared libraries" in run.stderr:
                continue  # Too little for the program itself.
            ends.add(run.returncode)
            if run.returncode != 0:
                self.assertEqual(run.returncode, 1, (mebibytes, run.stderr))
                self.assertRegex(run.stderr, rb"\Akvasir: error: [^\n]*(memory|threads)[^\n]*\n"
                                             rb"(hint: [^\n]+\n)?\Z", mebibytes)
        self.assertEqual(ends, {0, 1})


if __name__ == "__main__":
    program.main()
