#!/usr/bin/env python3
"""train, killed without a word at random moments: nothing but the steps since the last checkpoint
is lost, and the end is that of the unbroken run, byte for byte.

KVASIR_KILLS (8): how often it is killed. The seed of the moments is printed, and can be given as
KVASIR_KILL_SEED.
"""

import os
import random
import shutil
import signal
import subprocess
import time

import program

KILLS = int(os.environ.get("KVASIR_KILLS", "8"))
SEED = int(os.environ.get("KVASIR_KILL_SEED", "1"))
CHECKPOINT_EVERY = 3
FLAGS = ("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16", "--batch", "4",
         "--warmup", "2", "--dropout", "0.1", "--name", "x", "--threads", "1",
         "--checkpoint-every", str(CHECKPOINT_EVERY), "--eval-every", "5", "--sample-every", "7",
         "--sample-tokens", "4")


class TrainKillTest(program.CliTest):
    def run_for(self, seconds, *arguments):
        """Runs it, killed after so many seconds; its exit status."""
        process = subprocess.Popen([program.PROGRAM, *map(str, arguments)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        try:
            _, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            _, err = process.communicate()
        self.assertIn(process.returncode, (0, -signal.SIGKILL), err.decode())
        return process.returncode

    def logged(self, name):
        """The steps that a log has whole lines of."""
        path = self.home / name
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[1:-1]
        return [int(line.split(b"\t")[0]) for line in lines]

    def same_end(self, steps, resumed_from):
        for name in ("gguf", "ckpt/last.kvckpt", "gguf.report/samples.jsonl"):
            self.assertEqual((self.home / f"cut.{name}").read_bytes(),
                             (self.home / f"whole.{name}").read_bytes(), (name, resumed_from))
        self.assertEqual(self.logged("cut.gguf.log"), list(range(1, steps + 1)))

    def test_killed_at_any_moment(self):
        draw = random.Random(SEED)
        print(f"KVASIR_KILL_SEED={SEED} KVASIR_KILLS={KILLS}")
        text = self.path("text", "".join(random.Random(3).choices("春风花月江山水，。\n", k=9000)))
        whole = ("train", text, "-o", self.path("whole.gguf"), *FLAGS, "--checkpoint",
                 self.path("whole.ckpt"))
        cut = ("train", text, "-o", self.path("cut.gguf"), *FLAGS, "--checkpoint",
               self.path("cut.ckpt"))
        begin = time.monotonic()
        self.kvasir(*whole, "--steps", 60)
        steps = 60 * max(1, round(1.0 / (time.monotonic() - begin)))  # About a second.
        for name in ("whole.gguf", "whole.gguf.log", "whole.ckpt/last.kvckpt"):
            os.remove(self.home / name)
        begin = time.monotonic()
        self.kvasir(*whole, "--steps", steps)
        seconds = time.monotonic() - begin
        resumed_from = []
        for _ in range(KILLS):
            resume = ("--resume",) if (self.home / "cut.ckpt/last.kvckpt").exists() else ()
            before = self.logged("cut.gguf.log")
            # Most moments fall into the run, some before its first step, some into its end.
            status = self.run_for(draw.uniform(0, 1.3 * seconds / 2), *cut, "--steps", steps,
                                  *resume)
            after = self.logged("cut.gguf.log")
            if resume and after and after[-1] > (before or [0])[-1]:
                # What was logged before the kill is there again, from the checkpoint on.
                self.assertEqual(after, list(range(after[0], after[-1] + 1)))
                self.assertEqual(after[0], 1)
            if after:
                resumed_from.append(after[-1] - after[-1] % CHECKPOINT_EVERY)
            if status == 0:  # It came to its end: once more from the start.
                self.same_end(steps, resumed_from)
                shutil.rmtree(self.home / "cut.ckpt")
                resumed_from = []
        self.kvasir(*cut, "--steps", steps, *(
            ("--resume",) if (self.home / "cut.ckpt/last.kvckpt").exists() else ()))
        self.same_end(steps, resumed_from)

    def test_at_most_the_steps_since_the_checkpoint_are_lost(self):
        text = self.path("text", "春风花月江山水，。\n" * 200)
        arguments = ("train", text, "-o", self.path("m.gguf"), *FLAGS, "--checkpoint",
                     self.path("ckpt"), "--steps", 100000)
        for seconds in (0.4, 0.7):
            resume = ("--resume",) if (self.home / "ckpt/last.kvckpt").exists() else ()
            self.assertEqual(self.run_for(seconds, *arguments, *resume), -signal.SIGKILL)
        done = self.logged("m.gguf.log")[-1] if self.logged("m.gguf.log") else 0
        self.kvasir(*arguments, "--resume", "--stop-at", 1)  # Stops at once, where it stands.
        kept = self.logged("m.gguf.log")
        self.assertGreaterEqual(len(kept), done - CHECKPOINT_EVERY)
        self.assertLessEqual(len(kept), done)


if __name__ == "__main__":
    program.main()
