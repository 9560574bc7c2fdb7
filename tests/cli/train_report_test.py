#!/usr/bin/env python3
"""train around the steps: folders, what is held out, samples, the report, estimates, presets,
--init, early ends, schedules."""

import json
import math
import os
import random
import struct

import program

SHAPE = ("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16")
TRAIN = (*SHAPE, "--batch", "4", "--warmup", "2")
HAN = "春风花月江山水云日人天不来去，。"


class TrainReportTest(program.CliTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(11)
        self.lines = ["".join(draw.choices(HAN, k=14)) + "\n" for _ in range(600)]
        self.text = self.path("text", "".join(self.lines))
        self.held_out = self.path("val", "".join(draw.choices(HAN, k=300)))

    def train(self, output, *arguments, text=None, shape=TRAIN, **how):
        return self.kvasir("train", text or self.text, "-o", self.path(output), *shape, *arguments,
                           **how)

    def content(self, name):
        return (self.home / name).read_bytes()

    def samples(self, name):
        lines = self.content(f"{name}.report/samples.jsonl").decode().splitlines()
        return [json.loads(line) for line in lines]

    def test_a_folder_is_split_by_files(self):
        os.makedirs(self.home / "books/deep")
        for index in range(60):
            name = f"books/{'deep/' if index % 2 else ''}{index}.txt"
            self.path(name, f"book {index}\n" + "".join(self.lines[index * 10:index * 10 + 10]))
        self.path("books/.notes", program.INVALID)
        run = self.train("m.gguf", "--steps", 4, "--eval-every", 2, "--tokenizer", "char",
                         text=self.path("books"))
        self.assertRegex(run.text, r"3 of 60 files are held out: \d+ of \d+ characters")
        report = self.content("m.gguf.report/report.md").decode()
        self.assertIn("60 files", report)
        self.assertIn("3 of 60 files are held out", report)
        again = self.train("n.gguf", "--steps", 4, "--eval-every", 2, "--tokenizer", "char",
                           "--name", "m", text=self.path("books"))
        self.assertEqual(self.content("n.gguf"), self.content("m.gguf"), again.text)
        self.path("books/image.png", b"\x89PNG\x00\x01")
        self.refused(1, r"image\.png", "train", self.path("books"), "-o", self.path("x.gguf"))
        os.remove(self.home / "books/image.png")
        self.refused(2, "same file as the text", "train", self.path("books"), "-o",
                     self.path("books/deep/7.txt"))
        self.assertEqual(self.content("books/deep/7.txt")[:6], b"book 7")

    def test_figures_are_those_of_eval(self):
        for kind in ("char", "bpe"):
            out = self.train(f"{kind}.gguf", "--val", self.held_out, "--steps", 6, "--eval-every",
                             3, "--tokenizer", kind, "--json").json
            score = self.kvasir("eval", self.held_out, "--json", "-m",
                                self.path(f"{kind}.gguf")).json
            self.assertAlmostEqual(out["held_out_nll"], score["nll"], places=9)
            self.assertAlmostEqual(out["perplexity"], math.exp(score["nll"]), places=6)
            self.assertAlmostEqual(out["bits_per_char"], score["bits_per_char"], places=9)
            report = self.content(f"{kind}.gguf.report/report.md").decode()
            self.assertIn(f"| {out['held_out_nll']:.4f} | {out['perplexity']:.2f} | "
                          f"{out['bits_per_char']:.4f} |", report)
            self.assertEqual(out["report"], self.path(f"{kind}.gguf.report/report.md"))
            svg = self.content(f"{kind}.gguf.report/loss.svg").decode()
            self.assertTrue(svg.startswith("<svg") and svg.endswith("</svg>\n"))
            self.assertEqual(svg.count("<circle"), 2)

    def test_the_reports_command_repeats_the_run(self):
        self.train("m.gguf", "--steps", 5, "--schedule", "wsd", "--dropout", "0.1", "--clip", "0.5")
        report = self.content("m.gguf.report/report.md").decode()
        command = report.rsplit("```sh\n", 1)[1].split("\n```")[0].split(" ")
        self.assertEqual(command[:2], ["kvasir", "train"])
        before = self.content("m.gguf")
        os.remove(self.home / "m.gguf")
        self.kvasir(*command[1:])
        self.assertEqual(self.content("m.gguf"), before)

    def test_samples_are_what_generate_writes(self):
        flags = ("--steps", 8, "--val-share", 0, "--name", "x", "--sample-every", 4,
                 "--sample-prompt", "春", "--sample-tokens", 12)
        run = self.train("whole.gguf", *flags)
        samples = self.samples("whole.gguf")
        self.assertEqual([s["step"] for s in samples], [4, 8])
        written = self.kvasir("generate", "-p", "春", "-n", 12, "--seed", 1, "-m",
                              self.path("whole.gguf"), "--json").json["choices"][0]["text"]
        self.assertEqual(samples[-1]["text"], written)
        self.assertIn("step 8: 春", run.err)
        self.assertIn("Step 8:", self.content("whole.gguf.report/report.md").decode())
        # They are no part of the result, and a resumed run has them all.
        self.train("plain.gguf", *flags[:6], "--no-report")
        self.assertFalse((self.home / "plain.gguf.report").exists())
        self.assertEqual(self.content("plain.gguf"), self.content("whole.gguf"))
        checkpoint = ("--checkpoint", self.path("ckpt"))
        self.train("cut.gguf", *flags, *checkpoint, "--stop-at", 5)
        self.train("cut.gguf", *flags, *checkpoint, "--resume")
        self.assertEqual(self.samples("cut.gguf"), samples)
        # Of a list that is none, nothing is lost.
        self.path("cut.gguf.report/samples.jsonl", "notes\n")
        self.refused(1, "samples.jsonl", "train", self.text, "-o", self.path("cut.gguf"), *TRAIN,
                     *flags, *checkpoint, "--resume")
        self.assertEqual(self.content("cut.gguf.report/samples.jsonl"), b"notes\n")

    def test_what_is_known_by_heart_is_counted(self):
        little = self.path("little", "".join(self.lines[:2]) * 60)
        out = self.train("m.gguf", "--steps", 300, "--lr", "0.01", "--val-share", 0, "--json",
                         "--context", 32, text=little,
                         shape=("--layers", 1, "--heads", 2, "--dim", 32, "--batch", 4)).json
        self.assertGreater(out["generated_lines"], 20)
        self.assertGreater(out["copied_lines"] / out["generated_lines"], 0.7)
        out = self.train("n.gguf", "--steps", 1, "--json",
                         shape=("--context", 64, "--dim", 16)).json
        self.assertEqual(out["copied_lines"], 0)

    def test_estimate_tells_and_touches_nothing(self):
        before = sorted(os.listdir(self.home))
        out = self.kvasir("train", self.text, *TRAIN, "--estimate", "--steps", 50, "--json",
                          "--val-share", "0.1", "--dtype", "f16", "--checkpoint",
                          self.path("ckpt")).json
        self.assertEqual(sorted(os.listdir(self.home)), before)
        self.assertEqual(out["cache_bytes_per_token"], 2 * 1 * 16 * 4)
        self.assertEqual(out["tokens_per_step"], 64)
        self.assertEqual(out["text_tokens"] + out["held_out_tokens"], 600 * 15)
        self.assertAlmostEqual(out["passes"], 50 * 64 / out["text_tokens"])
        self.assertGreater(out["seconds"], 0)
        self.assertAlmostEqual(out["seconds"],
                               50 * out["seconds_per_step"] + out["seconds_per_evaluation"])
        self.assertEqual(out["checkpoint_bytes"], 4 * 4 * out["parameters"])
        made = self.train("m.gguf", "--steps", 1, "--dtype", "f16", "--json").json
        self.assertEqual(made["parameters"], out["parameters"])
        # The file has vocabulary and metadata besides.
        size = len(self.content("m.gguf"))
        self.assertTrue(out["model_bytes"] < size < out["model_bytes"] + 30000, size)
        text = self.kvasir("train", self.text, *TRAIN, "--estimate").text
        self.assertRegex(text, r"(?m)^time +about \d")
        self.assertRegex(text, r"(?m)^cache +128 bytes a token")
        self.refused(2, "--output", "train", self.text, *TRAIN)

    def test_presets_give_way_to_flags(self):
        run = self.kvasir("train", self.text, "-o", self.path("m.gguf"), "--preset", "nano",
                          "--steps", 2, "--layers", 1, "--dim", 16, "--heads", 2, "--batch", 2,
                          "--json")
        self.assertRegex(run.err, r"preset: --layers 1 --heads 2 --dim 16 --context \d+ --batch 2 "
                                  r"--steps 2 ")
        self.assertEqual(run.json["steps"], 2)
        sizes = [self.kvasir("train", self.text, "--preset", name, "--layers", 1, "--dim", 8,
                             "--heads", 1, "--batch", 1, "--estimate", "--json").json["steps"]
                 for name in ("nano", "base")]
        self.assertLessEqual(sizes[0], sizes[1])
        self.refused(2, "--preset", "train", self.text, "-o", self.path("m.gguf"), "--preset",
                     "big")

    def test_going_on_from_a_model(self):
        first = self.train("first.gguf", "--steps", 30, "--lr", "0.01", "--val", self.held_out,
                           "--json").json
        for arch in ("gpt2", "llama"):
            base = self.path(f"{arch}.gguf")
            nll = self.train(f"{arch}.gguf", "--arch", arch, "--steps", 30, "--lr", "0.01", "--val",
                             self.held_out, "--json").json["held_out_nll"]
            # Where next to nothing is learned, the model is as good as it was.
            out = self.train("next.gguf", "--init", base, "--steps", 1, "--lr", "1e-9", "--val",
                             self.held_out, "--json", shape=("--batch", 4)).json
            self.assertAlmostEqual(out["held_out_nll"], nll, places=4)
            self.assertEqual(out["vocab"], first["vocab"])
        other = self.path("other", "人来人去，不见江山。雪\n" * 60)
        flags = ("--init", self.path("gpt2.gguf"), "--steps", 6, "--name", "x", "--val-share", 0,
                 "--batch", 2)
        self.train("whole.gguf", *flags, text=other, shape=())
        checkpoint = ("--checkpoint", self.path("ckpt"))
        self.train("cut.gguf", *flags, *checkpoint, "--stop-at", 3, text=other, shape=())
        self.train("cut.gguf", *flags, *checkpoint, "--resume", text=other, shape=())
        self.assertEqual(self.content("cut.gguf"), self.content("whole.gguf"))
        other_start = [self.path("first.gguf") if x == flags[1] else x for x in flags]
        self.train("third.gguf", *other_start, text=other, shape=())
        self.refused(1, "another text, shape or setting", "train", other, "-o",
                     self.path("cut.gguf"), *flags[2:], "--init", self.path("next.gguf"),
                     *checkpoint, "--resume")
        for wrong in (("--layers", 1), ("--arch", "gpt2"), ("--preset", "nano")):
            self.refused(2, "--init", "train", other, "-o", self.path("x.gguf"), *flags, *wrong)
        self.refused(2, "same file as --init", "train", other, "-o", flags[1], *flags)
        self.refused(1, "deepseek2", "train", other, "-o", self.path("x.gguf"), "--init",
                     program.SHARED / "latent.gguf")
        self.refused(1, "none", "train", other, "-o", self.path("x.gguf"), "--init",
                     self.path("none"))

    def test_patience(self):
        out = self.train("m.gguf", "--val", self.held_out, "--steps", 500, "--eval-every", 2,
                         "--lr", 3, "--patience", 2, "--json").json
        self.assertTrue(out["stopped_early"])
        self.assertFalse(out["stopped"])
        self.assertEqual(out["steps"], out["best_step"] + 4)
        self.assertIn("ended early: no better for 2 evaluations",
                      self.content("m.gguf.report/report.md").decode())

    def test_a_level_rate_lets_a_run_grow(self):
        flags = ("--schedule", "wsd", "--decay", "0.5", "--name", "x", "--val-share", 0)
        checkpoint = ("--checkpoint", self.path("ckpt"))
        self.train("long.gguf", *flags, "--steps", 40)
        self.train("grown.gguf", *flags, *checkpoint, "--steps", 20, "--stop-at", 10)
        self.train("grown.gguf", *flags, *checkpoint, "--steps", 40, "--resume")
        self.assertEqual(self.content("grown.gguf"), self.content("long.gguf"))
        self.refused(1, "another text, shape or setting", "train", self.text, "-o",
                     self.path("grown.gguf"), *TRAIN, *checkpoint, "--resume", "--steps", 50,
                     "--val-share", 0)

    def test_texts_that_teach_nothing(self):
        output = ("-o", self.path("m.gguf"))
        self.refused(1, "10 tokens; it needs more than the context of 128", "train",
                     self.path("ten", "0123456789"), *output, "--tokenizer", "char")
        self.refused(1, "one character, 'a', again and again", "train",
                     self.path("same", "a" * 100000), *output)
        self.refused(1, "nothing but blanks", "train", self.path("blank", " \n" * 1000), *output)
        os.makedirs(self.home / "empty")
        self.refused(1, "no file with text", "train", self.path("empty"), *output)
        self.refused(2, "exclude each other", "train", self.text, *output, "--val", self.held_out,
                     "--val-share", "0.1")
        self.refused(1, "--val-share 0.0001 of this text is 1 tokens", "train", self.text, *output,
                     "--val-share", "0.0001", "--tokenizer", "char")
        self.assertFalse((self.home / "m.gguf").exists())

    def test_a_loss_that_is_not_finite_names_the_step(self):
        self.train("good.gguf", "--steps", 1, "--val-share", 0)
        # Of the last tensor, the output matrix: finite, but the logits are not.
        bad = self.path("bad.gguf",
                        self.content("good.gguf")[:-400] + struct.pack("<f", 3e38) * 100)
        self.refused(1, r"step 1: loss (inf|nan).* the weights are those of step 0", "train",
                     self.text, "-o", self.path("m.gguf"), "--init", bad, "--steps", 4,
                     "--val-share", 0)
        self.assertFalse((self.home / "m.gguf").exists())


if __name__ == "__main__":
    program.main()
