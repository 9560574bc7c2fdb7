#!/usr/bin/env python3
"""convert: llama2.c's .bin into GGUF, element types; and what comes of bad files."""

import hashlib
import os
import pathlib
import struct
import unittest

import gguf_file
import program

STORIES = pathlib.Path(__file__).resolve().parents[2].parent / "shared/data/stories260k"
# What run.c of llama2.c prints at temperature 0 for 200 tokens from an empty prompt.
STORY_BEGINS = "Once upon a time, there was a little girl named Lily."
STORY_SHA256 = "beeb5cb46785efee81a8545300b31e396b595e5ce6f3b77db201545501981d14"

PIECES = [("<unk>", 0), ("\n<s>\n", 0), ("\n</s>\n", 0), *((f"<0x{b:02X}>", 0) for b in range(256)),
          (" ", -9), ("a", -10), ("b", -11), (" a", -1), ("ab", -2)]


def tokenizer_bin(pieces=None, longest=7):
    out = struct.pack("<i", longest)
    for text, score in pieces or PIECES:
        raw = text.encode()
        out += struct.pack("<fi", score, len(raw)) + raw
    return out


def model_bin(dim=16, hidden=12, layers=2, heads=4, kv_heads=2, vocab=len(PIECES), context=32,
              shared=True):
    kv_dim = dim // heads * kv_heads
    layer = 2 * dim + 2 * dim * dim + 2 * kv_dim * dim + 3 * hidden * dim
    count = vocab * dim * (1 if shared else 2) + layers * layer + dim + context * (dim // heads)
    header = struct.pack("<7i", dim, hidden, layers, heads, kv_heads, vocab if shared else -vocab,
                         context)
    return header + struct.pack(f"<{count}f", *(((i * 5) % 17 - 8) / 32 for i in range(count)))


class ConvertTest(program.CliTest):
    def converted(self, *flags, **shape):
        model = self.path("model.bin", model_bin(**shape))
        tokens = self.path("tok.bin", tokenizer_bin())
        out = self.path("out.gguf")
        run = self.kvasir("convert", model, out, "--tokenizer", tokens, *flags)
        self.assertEqual(run.out, b"")
        return out

    def test_llama2c(self):
        for shared in (True, False):
            out = self.converted(shared=shared)
            info = self.kvasir("inspect", out, "--json").json
            expected = {"architecture": "llama", "layers": 2, "heads": 4, "kv_heads": 2,
                        "embedding": 16, "context": 32, "vocab": len(PIECES)}
            self.assertEqual({key: info[key] for key in expected}, expected)
            names = [tensor["name"] for tensor in info["tensors"]]
            self.assertEqual("output.weight" in names, not shared)
            self.assertEqual(info["metadata"]["tokenizer.ggml.bos_token_id"], 1)
            ids = self.kvasir("generate", "-m", out, "--json", "-n", 4, "--temperature", 0,
                              "-p", "ab a").json["choices"][0]["token_ids"]
            self.assertEqual(ids, self.kvasir("generate", "-m", out, "--json", "-n", 4,
                                              "--temperature", 0, "-p", "ab a", "--no-kv-cache"
                                              ).json["choices"][0]["token_ids"])

    def test_its_tokenizer(self):
        out = self.converted()
        tokens = self.kvasir("tokenize", "-m", out, "--json", "ab a").json
        self.assertEqual(tokens["token_ids"], [262, 261, 262])  # ▁a is worth more than ab.
        self.assertEqual(tokens["tokens"], [" a", "b", " a"])
        for text in ("ab a", "", " ", "  a", "é\n", "<s>", "▁"):
            ids = self.kvasir("tokenize", "-m", out, "--json", "--", text).json["token_ids"]
            if text:
                back = self.kvasir("detokenize", "-m", out, "--json", "--", *ids).json["text"]
                self.assertEqual(back, text)
        self.assertEqual(self.kvasir("detokenize", "-m", out, "1", "262").text, "a\n")

    def test_element_types(self):
        f32 = pathlib.Path(self.converted())
        whole = f32.read_bytes()
        for dtype in ("f16", "bf16"):
            direct = pathlib.Path(self.converted("--dtype", dtype)).read_bytes()
            source = self.path("f32.gguf", whole)
            later = self.path(f"{dtype}.gguf")
            self.kvasir("convert", source, later, "--dtype", dtype)
            dtypes = {tensor["name"]: tensor["dtype"]
                      for tensor in self.kvasir("inspect", later, "--json").json["tensors"]}
            self.assertEqual(dtypes["blk.0.attn_q.weight"], dtype)
            self.assertEqual(dtypes["blk.0.attn_norm.weight"], "f32")
            self.assertLess(len(direct), len(whole))
            # All weights are multiples of 1/32, exact in every type: the bits of the answer stay.
            again = self.path("again.gguf")
            self.kvasir("convert", later, again, "--dtype", "f32")
            self.assertEqual(pathlib.Path(again).read_bytes(), whole)
            drawn = [self.ids("-m", file, "-n", 6, "-p", "ab") for file in (later, source)]
            self.assertEqual(drawn[0], drawn[1])

    def test_rounded_weights(self):
        f32 = self.converted(dim=64, hidden=96)
        whole = pathlib.Path(f32).stat().st_size
        for dtype, share in (("q8_0", 0.35), ("q4_0", 0.25)):
            direct = pathlib.Path(self.converted("--dtype", dtype, dim=64, hidden=96)).read_bytes()
            source = self.converted(dim=64, hidden=96)
            rounded = self.path(f"{dtype}.gguf")
            self.assertEqual(self.kvasir("convert", source, rounded, "--dtype", dtype).err, "")
            self.assertLess(len(direct), share * whole)
            info = self.kvasir("inspect", rounded, "--json").json
            dtypes = {tensor["name"]: tensor["dtype"] for tensor in info["tensors"]}
            self.assertEqual(dtypes["blk.0.attn_q.weight"], dtype.upper())
            self.assertEqual(dtypes["token_embd.weight"], dtype.upper())
            self.assertEqual(dtypes["blk.0.attn_norm.weight"], "f32")
            self.assertEqual(info["metadata"]["general.quantization_version"], 2)
            # The same answer with and without the cache, on every axis of the contract.
            on, off = (self.ids("-m", rounded, "-n", 6, "-p", "ab", *flags)
                       for flags in ((), ("--no-kv-cache",)))
            self.assertEqual(on, off)
            report = self.kvasir("verify", "-m", rounded, "--trials", 2, "--seed", 1, "--json").json
            self.assertEqual(report["mismatches"], 0)
            self.assertGreater(report["axes"]["simd"]["comparisons"], 0)
            self.assertFalse(report["axes"]["trainer"].get("applicable", True))
            # And back: what the blocks mean, in f32.
            self.kvasir("convert", rounded, self.path("back.gguf"), "--dtype", "f32")
            self.assertEqual(pathlib.Path(self.path("back.gguf")).stat().st_size, whole)

    def test_rows_of_no_whole_blocks_are_kept(self):
        source, out = self.converted(), self.path("kept.gguf")  # Rows of 16 and 12 numbers.
        run = self.kvasir("convert", source, out, "--dtype", "q8_0")
        self.assertRegex(run.err, "note: rows of 15 of .* no whole blocks of 32 numbers")
        tensors = self.kvasir("inspect", out, "--json").json["tensors"]
        self.assertEqual({tensor["dtype"] for tensor in tensors}, {"f32"})

    def test_over_itself(self):
        out = self.converted()
        self.kvasir("convert", out, out, "--dtype", "f16")
        self.kvasir("generate", "-m", out, "-n", 1, "--seed", 1)

    def test_usage(self):
        model, tokens = self.path("m.bin", model_bin()), self.path("t.bin", tokenizer_bin())
        gguf = self.converted()
        self.refused(2, "OUT|required", "convert", model)
        self.refused(2, "holds no vocabulary", "convert", model, self.path("x.gguf"))
        self.refused(2, "its own", "convert", gguf, self.path("x.gguf"), "--tokenizer", tokens)
        self.refused(2, "f64", "convert", gguf, self.path("x.gguf"), "--dtype", "f64")
        self.refused(2, "written are GGUF", "convert", gguf, self.path("x.safetensors"))
        self.assertFalse(os.path.exists(self.path("x.gguf")))

    def test_bad_files(self):
        model, tokens = self.path("m.bin", model_bin()), self.path("t.bin", tokenizer_bin())
        out = self.path("x.gguf")

        def bad(pattern, model, tokens):
            self.refused(1, pattern, "convert", model, out, "--tokenizer", tokens)
            self.assertFalse(os.path.exists(out))

        bad("No such file", self.path("missing.bin"), tokens)
        bad("No such file", model, self.path("missing.bin"))
        for content in (b"", b"\0" * 100, b"text, not a model\n" * 50, b"GGUF", model_bin()[:-1],
                        model_bin() + b"\0", struct.pack("<7i", *[2**31 - 2] * 7) + b"\0" * 99):
            bad("bad.bin", self.path("bad.bin", content), tokens)
        bad("n_kv_heads 3 does not divide", self.path("bad.bin", model_bin(kv_heads=3)), tokens)
        bad("heads of an even size", self.path("bad.bin", model_bin(heads=16)), tokens)
        for content in (b"", struct.pack("<i", -1), tokenizer_bin(longest=3), tokenizer_bin()[:-1]):
            bad("bad.tok", model, self.path("bad.tok", content))
        # A name as long as only some readers take.
        for length in (64, 65):
            named = gguf_file.encode({"general.architecture": "llama"},
                                     [("n" * length, [2], [1.0, 2.0])])
            self.refused(1, f"bad.gguf: tensor name 'n.* is {length} bytes long, allowed are 1 to "
                         "63", "convert", self.path("bad.gguf", named), out)
        os.mkfifo(self.path("pipe"))  # Nobody writes to it.
        for command in (("inspect", self.path("pipe")), ("convert", self.path("pipe"), out),
                        ("next", "a", "-m", self.path("pipe"))):
            self.refused(1, "pipe': not a regular file", *command)
        # A tokenizer and an embedding of different sizes.
        for vocab, how in ((200, "more"), (300, "fewer")):
            bad(f"264 tokens, {how} than the model's {vocab}",
                self.path("other.bin", model_bin(vocab=vocab)), tokens)
        self.refused(1, "no-folder", "convert", model, self.path("no-folder/x.gguf"), "--tokenizer",
                     tokens)

    def test_whole_or_not_at_all(self):
        model, tokens = self.path("m.bin", model_bin()), self.path("t.bin", tokenizer_bin())
        out = self.path("out.gguf", "old")
        self.refused(1, "out.gguf", "convert", model, out, "--tokenizer", tokens, file_size=4096)
        self.assertEqual(pathlib.Path(out).read_bytes(), b"old")
        names = sorted(path.name for path in self.home.iterdir())
        self.assertEqual(names, ["m.bin", "out.gguf", "t.bin"])

    @unittest.skipUnless(STORIES.is_dir(), "../shared is not there")
    def test_the_story(self):
        out = self.path("stories.gguf")
        self.kvasir("convert", STORIES / "stories260K.bin", out, "--tokenizer",
                    STORIES / "tok512.bin")
        story = self.kvasir("generate", "-m", out, "--temperature", 0, "-n", 200).text
        self.assertTrue(story.startswith(STORY_BEGINS), story)
        self.assertEqual(hashlib.sha256(story.rstrip("\n").encode()).hexdigest(), STORY_SHA256)
        # A prompt and its continuation, joined, are the same story.
        prompt = STORY_BEGINS[:16]
        rest = self.kvasir("generate", "-m", out, "--temperature", 0, "-n", 120, "-p", prompt).text
        self.assertTrue(story.startswith(prompt + rest.rstrip("\n")), rest)


class ByteLevelTest(program.CliTest):
    MERGES = (("h", "e"), ("t", "he"), (" ", "the"), ("1", "1"), ("\n", "\n"))

    def model_of(self, pre, rows=None, **vocabulary):
        made = gguf_file.byte_level_vocabulary(self.MERGES, pre, **vocabulary)
        return self.path("bytes.gguf", gguf_file.gpt2_model(made, rows))

    def test_tokenize(self):
        expected = {"gpt-2": [256, 109, 260, 258, 32, 259, 49],
                    "llama-bpe": [256, 109, 260, 258, 32, 259, 49],
                    "qwen2": [256, 109, 260, 258, 32, 49, 49, 49]}
        for pre, ids in expected.items():
            model = self.model_of(pre)
            out = self.kvasir("tokenize", "-m", model, "--json", "hem\n\n the 111").json
            self.assertEqual(out["token_ids"], ids, pre)
            self.assertEqual(out["tokens"][0], "he")
            self.kvasir("generate", "-m", model, "-n", 3, "--seed", 1, "-p", "the")

    def test_specials_are_text_and_user_tokens_are_not(self):
        model = self.model_of("llama-bpe", user=("<think>",))
        for text, count in (("<|end|>", 7), ("<think>", 1), ("the<think>", 2), ("春", 3)):
            ids = self.kvasir("tokenize", "-m", model, "--json", text).json["token_ids"]
            self.assertEqual(len(ids), count, text)
            back = self.kvasir("detokenize", "-m", model, "--json", "--", *ids).json["text"]
            self.assertEqual(back, text)

    def test_refusals(self):
        self.refused(1, "tokenizer.ggml.pre is 'falcon'; supported are gpt-2, llama-bpe and qwen2",
                     "tokenize", "-m", self.model_of("falcon"), "x")
        for rows in (200, 300):
            self.refused(1, r"token_embd.weight.*262", "tokenize", "-m",
                         self.model_of("qwen2", rows), "x")
        vocabulary = gguf_file.byte_level_vocabulary(self.MERGES, "gpt-2")
        vocabulary["tokenizer.ggml.merges"].append("q x")
        model = self.path("merge.gguf", gguf_file.gpt2_model(vocabulary))
        self.refused(1, "merge.gguf.*merge 5 is 'q x'", "tokenize", "-m", model, "x")


if __name__ == "__main__":
    program.main()
