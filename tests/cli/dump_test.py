#!/usr/bin/env python3
"""What researchers take out of a model of every architecture: logits --what, diff, eval
--per-token."""

import array
import ast
import math
import pathlib

import program

TEXT = "春风花月江山水人天云日夜雨"
T = len(TEXT)
# Per model: its shapes, and the window of its second layer.
SHAPES = {
    "tiny": ({"hidden": [3, T, 32], "attention": [2, 2, T, T], "k": [2, 2, T, 16],
              "v": [2, 2, T, 16]}, T),
    "grouped": ({"hidden": [4, T, 32], "attention": [3, 4, T, T], "k": [3, 2, T, 10],
                 "v": [3, 2, T, 10]}, 9),
    "latent": ({"hidden": [4, T, 32], "attention": [3, 2, T, T], "k": [3, 1, T, 32],
                "v": [3, 1, T, 24]}, T),
}


def read_npy(path):
    """The shape and the numbers of a file of version 1.0 in C order."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:end].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"]
    return list(header["shape"]), array.array("f", data[end:])


class DumpTest(program.CliTest):
    def dump(self, what, name, *flags, **how):
        path = self.path(f"{name}.npy")
        out = self.kvasir("logits", "-p", TEXT, "--what", what, "--out", path, "--json", *flags,
                          **how).json
        shape, values = read_npy(path)
        self.assertEqual((out["what"], out["shape"], len(out["token_ids"])), (what, shape, T))
        self.assertEqual(math.prod(shape), len(values))
        return path, shape, values

    def test_shapes_and_equal_bits_however_arranged(self):
        for name, (shapes, _) in SHAPES.items():
            model = program.SHARED / f"{name}.gguf"
            for what, expected in shapes.items():
                with self.subTest(model=name, what=what):
                    a, shape, values = self.dump(what, "a", model=model)
                    self.assertEqual(shape, expected)
                    self.assertTrue(all(map(math.isfinite, values)))
                    b, _, _ = self.dump(what, "b", "--prefill-chunk", 3, "--no-kv-cache",
                                        "--threads", 2, model=model)
                    self.assertTrue(self.kvasir("diff", a, b, "--json").json["equal"])

    def test_attention_is_causal_and_sums_to_one(self):
        for name, (_, window) in SHAPES.items():
            _, (layers, heads, _, _), values = self.dump(
                "attention", "a", model=program.SHARED / f"{name}.gguf")
            for row in range(layers * heads * T):
                layer, t = row // (heads * T), row % T
                first = max(0, t - window + 1) if layer == 1 else 0
                weights = values[row * T:(row + 1) * T]
                self.assertTrue(all(w > 0 for w in weights[first:t + 1]), (name, row))
                self.assertFalse(any(weights[:first]) or any(weights[t + 1:]), (name, row))
                self.assertAlmostEqual(sum(weights), 1, delta=(T + 20) * 2**-24)

    def test_a_policy_shows(self):
        exact, _, _ = self.dump("v", "exact")
        rounded, _, _ = self.dump("v", "rounded", "--kv", "v=int8")
        out = self.command("diff", exact, rounded, "--json")
        self.assertEqual(out.status, 1)
        self.assertGreater(out.json["ulp_max"], 0)
        _, _, values = self.dump("attention", "windowed", "--kv", "window=4,sinks=1")
        last = values[-T:]
        self.assertEqual([t for t in range(T) if last[t] != 0], [0, *range(T - 4, T)])

    def test_refuses(self):
        out = self.path("x.npy")
        self.refused(2, "--what.*logits.*hidden.*attention", "logits", "-p", "春", "--out", out,
                     "--what", "x")
        self.refused(2, "49.*48", "logits", "-p", "春" * 49, "--out", out, "--what", "hidden")
        for what in ("hidden", "attention", "k", "v"):
            self.refused(1, "No such file", "logits", "-p", "春", "--out", self.path("no/x.npy"),
                         "--what", what)
            self.refused(1, "large", "logits", "-p", TEXT, "--out", out, "--what", what,
                         file_size=512)
        self.assertFalse(pathlib.Path(out).exists())

    def test_eval_tells_each_token(self):
        text = self.path("text", "春风花月，江山水人。\n" * 8)
        for name in SHAPES:
            out = self.kvasir("eval", text, "--per-token", "--json",
                              model=program.SHARED / f"{name}.gguf").json
            tokens = out["per_token"]
            self.assertEqual([token["position"] for token in tokens],
                             list(range(1, out["tokens"] + 1)))
            self.assertAlmostEqual(sum(token["nll"] for token in tokens) / len(tokens), out["nll"])
            self.assertEqual("".join(token["token"] for token in tokens[:4]), "风花月，")


if __name__ == "__main__":
    program.main()
