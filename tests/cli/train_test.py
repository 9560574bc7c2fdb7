#!/usr/bin/env python3
"""train: what it writes, the same bits, interruptions, bad texts and settings, full disks."""

import os
import pathlib
import random
import signal
import subprocess
import time

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

    def until(self, process, log, step):
        """Waits until the log has that step; fails if the run ends before."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            if os.path.exists(log) and f"\n{step}\t" in pathlib.Path(log).read_text():
                return
            time.sleep(0.005)
        process.kill()
        self.fail(f"no step {step} in time: {process.communicate()}")

    def interrupted(self, sent, step, *arguments):
        process = subprocess.Popen(
            [program.PROGRAM, "train", self.text, "--val", self.held_out, "-o",
             self.path("cut.gguf"), *TRAIN, "--checkpoint", self.path("ckpt"),
             *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
                         ["held_out", "m.gguf", "m.gguf.log", "text"])

    def test_the_same_bits_however_it_is_computed(self):
        self.train("a.gguf", "--name", "x", "--steps", 5, "--threads", 1)
        self.train("b.gguf", "--name", "x", "--steps", 5, "--threads", 3)
        self.train("c.gguf", "--name", "x", "--steps", 5, "--micro-batch", 1)
        self.assertEqual(self.content("a.gguf"), self.content("b.gguf"))
        self.assertEqual(self.content("a.gguf"), self.content("c.gguf"))
        self.train("d.gguf", "--name", "x", "--steps", 5, "--seed", 2)
        self.assertNotEqual(self.content("a.gguf"), self.content("d.gguf"))

    def test_ctrl_c_saves_and_resume_is_the_unbroken_run(self):
        flags = ("--steps", 400, "--eval-every", 20, "--name", "x")
        status, out, err = self.interrupted(signal.SIGINT, 7, *flags)
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"\Astopped .* \d+ steps")
        self.assertIn("--resume", out)
        self.assertTrue((self.home / "cut.gguf").exists())
        self.refused(2, "exists", "train", self.text, "-o", self.path("new.gguf"), *TRAIN,
                     "--checkpoint", self.path("ckpt"))
        self.train("cut.gguf", *flags, "--checkpoint", self.path("ckpt"), "--resume")
        self.train("whole.gguf", *flags, "--checkpoint", self.path("whole"))
        self.assertEqual(self.content("cut.gguf"), self.content("whole.gguf"))

    def test_killed_without_a_word_it_goes_on_from_the_checkpoint(self):
        flags = ("--steps", 60, "--eval-every", 30, "--checkpoint-every", 2, "--name", "x")
        status, _, _ = self.interrupted(signal.SIGKILL, 5, *flags)
        self.assertEqual(status, -signal.SIGKILL)
        self.train("cut.gguf", *flags, "--checkpoint", self.path("ckpt"), "--resume")
        self.train("whole.gguf", *flags)
        self.assertEqual(self.content("cut.gguf"), self.content("whole.gguf"))

    def test_bad_texts(self):
        for content, why in (("", "empty"), ("春" * 16, "16 tokens.*16"),
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
        checkpoint = next((self.home / "ckpt").iterdir())
        whole = checkpoint.read_bytes()
        for damaged in (b"", whole[:100], whole[:-1],
                        whole[:-2000] + bytes([whole[-2000] ^ 1]) + whole[-1999:]):
            checkpoint.write_bytes(damaged)
            self.refused(1, "ckpt", *same)
        self.assertEqual(self.content("m.gguf"), before)

    def test_outputs_that_cannot_be_written(self):
        self.refused(1, "No space left", "train", self.text, "-o", "/dev/full", *TRAIN,
                     "--steps", 2)
        self.refused(1, "no/m.gguf", "train", self.text, "-o", self.path("no/m.gguf"), *TRAIN)
        self.refused(1, "folder", "train", self.text, "-o", str(self.home), *TRAIN)
        run = self.command("train", self.text, "-o", self.path("m.gguf"), *TRAIN, "--steps", 2,
                           "--log", "/dev/full")
        self.assertEqual(run.status, 1)
        self.assertRegex(run.err, "log '/dev/full': No space left")
        self.assertTrue((self.home / "m.gguf").exists())  # The run is worth more than its log.

    def test_a_disk_that_fills_while_saving(self):
        old = b"the model of last week"
        output = self.path("m.gguf", old)
        self.refused(1, "m.gguf", "train", self.text, "-o", output, *TRAIN, "--steps", 2,
                     file_size=8000)
        self.assertEqual(pathlib.Path(output).read_bytes(), old)
        self.assertEqual([x for x in os.listdir(self.home) if ".tmp" in x], [])


if __name__ == "__main__":
    program.main()
