#!/usr/bin/env python3
"""train under mpirun: the bits of one process. Skipped where the program was built without MPI, or
mpirun is not there."""

import os
import pathlib
import random
import shutil
import subprocess

import program

TRAIN = ("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16", "--batch", "6",
         "--shards", "3", "--warmup", "2", "--dropout", "0.1", "--threads", "1", "--name", "x",
         "--eval-every", "4", "--steps", "12")


class TrainPeersTest(program.CliTest):
    def setUp(self):
        super().setUp()
        library = pathlib.Path(program.PROGRAM).parent / "libkvasir_mpi.so"
        if not shutil.which("mpirun") or not library.exists():
            self.skipTest("no MPI here")
        self.text = self.path("text", "".join(random.Random(5).choices("春风花月江山水，。\n", k=9000)))

    def mpirun(self, count, *arguments):
        """mpirun's exit status, and what the processes printed."""
        environment = {**self.environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(
            ["mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "-n", str(count),
             program.PROGRAM, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            env=environment, cwd=self.home, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def train(self, output, *arguments):
        return ("train", self.text, "-o", self.path(output), *TRAIN, *arguments)

    def content(self, name):
        return (self.home / name).read_bytes()

    def test_the_bits_of_one_process(self):
        self.kvasir(*self.train("one.gguf", "--checkpoint", self.path("one")))
        for count in (2, 3):
            status, out, err = self.mpirun(
                count, *self.train("some.gguf", "--checkpoint", self.path(f"some{count}")))
            self.assertEqual(status, 0, err)
            self.assertEqual(out.count("trained"), 1, "one of them speaks")
            self.assertEqual(self.content("some.gguf"), self.content("one.gguf"))
            self.assertEqual(self.content(f"some{count}/last.kvckpt"),
                             self.content("one/last.kvckpt"))
            self.assertEqual(len(self.content("some.gguf.log").splitlines()), 13)

    def test_a_run_goes_on_with_another_number_of_them(self):
        self.kvasir(*self.train("one.gguf"))
        checkpoint = ("--checkpoint", self.path("ckpt"))
        status, _, err = self.mpirun(2, *self.train("cut.gguf", *checkpoint, "--stop-at", 5))
        self.assertEqual(status, 0, err)
        status, _, err = self.mpirun(3, *self.train("cut.gguf", *checkpoint, "--stop-at", 9,
                                                    "--resume"))
        self.assertEqual(status, 0, err)
        self.kvasir(*self.train("cut.gguf", *checkpoint, "--resume"))
        self.assertEqual(self.content("cut.gguf"), self.content("one.gguf"))

    def test_faults_end_all_of_them(self):
        status, _, err = self.mpirun(4, *self.train("m.gguf"))
        self.assertEqual(status, 2)
        self.assertIn("--shards 3 is not allowed for 4 processes", err)
        os.mkdir(self.home / "folder")
        status, _, err = self.mpirun(2, *self.train("folder"))
        self.assertEqual(status, 1)
        self.assertIn("it is a folder", err)


if __name__ == "__main__":
    program.main()
