#!/usr/bin/env python3
"""Known faults of files: what a model, its vocabulary or a text may say, and what of it is refused
by name before anything is divided, allocated or computed."""

import json
import pathlib
import struct

import running
from running import gguf_file

import hf_folder

TRAIN = ("--layers", 1, "--heads", 1, "--dim", 8, "--context", 4, "--batch", 2, "--shards", 1,
         "--steps", 2, "--warmup", 1, "--val-share", 0)


class LoadersTest(running.CaseTest):
    def load(self, path, *flags):
        return self.command("generate", "-m", path, "-p", "a", "-n", 2, "--seed", 1, *flags)

    def bad(self, pattern, content):
        """A GGUF file that must be refused."""
        path = self.path("bad.gguf", content)
        self.refused(1, pattern, "generate", "-m", path, "-p", "a", "--seed", 1)
        self.refused(1, pattern, "serve", "-m", path, "--port", 0)

    def bad_folder(self, pattern, model):
        folder = hf_folder.write(self.path("folder"), model)
        self.refused(1, pattern, "generate", "-m", folder, "-p", "a", "--seed", 1)

    def test_c117_whole_words_first_only_where_the_file_says_so(self):
        # Of llama 3's kind whole words are looked up first; the others only merge.
        ids = {}
        for name, family in (("llama", "llama"), ("qwen", "qwen2")):
            model = hf_folder.Llama(family)
            pieces = model.tokenizer["model"]["vocab"]
            pieces["gabc"] = max(pieces.values()) + 2  # No merge makes it.
            model.vocab = model.config["vocab_size"] = pieces["gabc"] + 1
            for tensor in ("model.embed_tokens.weight", "lm_head.weight"):
                model.weights.add(tensor, model.vocab, model.WIDTH)
            run = self.kvasir("tokenize", "-m", hf_folder.write(self.path(name), model), "gabc",
                              "--json")
            ids[name] = pieces["gabc"] in run.json["token_ids"]
        self.assertEqual(ids, {"llama": True, "qwen": False})
        # And a file of one kind that says the other is not guessed at.
        for family in ("llama", "qwen2"):
            model = hf_folder.Llama(family)
            model.tokenizer["model"]["ignore_merges"] ^= True
            self.bad_folder("ignore_merges", model)

    def test_c119_a_literal_pattern_is_no_regular_expression(self):
        for pattern in ({"String": hf_folder.LLAMA3_REGEX}, {"String": "a+"}, {"Regex": "a+"},
                        {"String": "\\s+"}, {}, {"Other": "a"}):
            model = hf_folder.Llama("llama")
            model.tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"] = pattern
            self.bad_folder("tokenizer.json", model)
        for step in ({"type": "Whitespace"}, {"type": "Digits"}, {"type": "New"}):
            model = hf_folder.Llama("llama")
            model.tokenizer["pre_tokenizer"]["pretokenizers"].insert(0, step)
            self.bad_folder(step["type"] + "|pre_tokenizer", model)
        model = hf_folder.Llama("llama")
        model.tokenizer["pre_tokenizer"]["pretokenizers"].reverse()  # In their order.
        self.bad_folder("tokenizer.json", model)

    def test_c121_bytes_both_ways_and_typed_names_of_tokens(self):
        model = running.tiny("korean", 48, "잠 수")
        for text in ("잠 깰 수", "수깰", "<0x41>", "<s></s>"):
            ids = self.kvasir("tokenize", "-m", model, text, "--json").json["token_ids"]
            back = self.kvasir("detokenize", "-m", model, *ids)
            self.assertEqual(back.text.removesuffix("\n"), text)
        ea = 3 + 0xEA  # Its token: bytes follow three special ones.
        for ids, text in (((ea, ea - 0xEA + 0xB9, ea - 0xEA + 0xB0), "깰"),
                          ((ea, 3 + ord("a")), "\ufffda"), ((3 + ord("a"), ea), "a\ufffd")):
            back = self.kvasir("detokenize", "-m", model, *ids)
            self.assertEqual(back.text.removesuffix("\n"), text)

    def test_c123_characters_that_the_training_text_does_not_hold(self):
        text, other = self.path("text", "abcabc" * 9), self.path("other", "abcdé" * 4)
        out = self.path("m.gguf")
        self.kvasir("train", text, "--val", other, "-o", out, "--tokenizer", "char", *TRAIN[:-2])
        for prompt in ("abd", "ABC", " ", "é", "\n", ""):
            run = self.command("generate", "-m", out, "-p", prompt, "-n", 2, "--seed", 1)
            self.assertEqual(run.status, 0, run.err)
            done = self.kvasir("tokenize", "-m", out, "x" + prompt, "--json")
            back = self.kvasir("detokenize", "-m", out, *done.json["token_ids"])
            self.assertEqual(back.text.removesuffix("\n"), "x" + prompt)
        self.kvasir("generate", "-m", out, "-n", 2, "--seed", 1)  # And the default prompt.
        # A vocabulary without bytes names what it lacks, and where.
        model = hf_folder.Gpt2()
        run = self.refused(2, "U\\+0069|'i'|0x69", "generate", "-m", hf_folder.write(
            self.path("letters"), model), "-p", "abi", "--seed", 1)
        self.assertIn("2", run.err)

    def test_c105_texts_as_short_as_a_window(self):
        for tokens, windows in ((0, None), (1, None), (4, None), (5, 1), (6, 2)):
            text = self.path("text", "ab" * 3)[:]
            pathlib.Path(text).write_text(("ab" * 3)[:tokens])
            flags = ("train", text, "-o", self.path("m.gguf"), "--tokenizer", "char", *TRAIN)
            if windows is None:
                self.refused(1, f"empty|{tokens} tokens.*4|one character", *flags)
            else:
                self.kvasir(*flags)
        whole = self.path("text", "ab" * 9)
        for tokens in (0, 1):
            held = self.path("held", "ab"[:tokens])
            self.refused(1, "empty|at least 2", "train", whole, "--val", held, "-o",
                         self.path("m.gguf"), "--tokenizer", "char", *TRAIN[:-2])

    def test_c137_special_ids_are_tokens_of_the_vocabulary(self):
        def file(**changes):
            return gguf_file.gpt2_model(running.VOCABULARY | {
                f"tokenizer.ggml.{key}_token_id": value for key, value in changes.items()})
        self.assertEqual(self.load(self.path("fine.gguf", file(bos=5))).status, 0)
        size = running.EOS + 1
        for changes in ({"bos": size}, {"eos": 4294967295}, {"unknown": 1 << 31}, {"eos": "x"},
                        {"eot": size}, {"eos": 0.5}):
            self.bad(next(iter(changes))[:3], file(**changes))
        for value in (-1, "x", 1 << 40, [0, 999], [[0]], 1.5):
            for model in (hf_folder.Gpt2(), hf_folder.Llama()):
                model.config["eos_token_id"] = value
                self.bad_folder("eos_token_id|999", model)
        several = hf_folder.Llama()
        several.config["eos_token_id"] = [3, 14]
        run = self.kvasir("generate", "-m", hf_folder.write(self.path("several"), several), "-p",
                          "a", "--seed", 1, "--json", "-n", 1)
        self.assertEqual(run.json["settings"]["end_tokens"], [3, 14])

    LLAMA = {"general.architecture": "llama", "llama.context_length": 16,
             "llama.embedding_length": 64, "llama.block_count": 1,
             "llama.feed_forward_length": 32, "llama.attention.head_count": 8,
             "llama.attention.head_count_kv": 4, "llama.rope.freq_base": 10000.0,
             "llama.attention.layer_norm_rms_epsilon": 1e-5}

    def test_c139_numbers_that_divide_or_size_are_checked_before_they_do(self):
        whole = self.LLAMA | running.VOCABULARY
        self.bad("missing|no tensor", gguf_file.encode(whole))  # All is well but the tensors.
        infinity = float("inf")
        for key, values in (("attention.head_count", (0, 3, 1 << 31)),
                            ("attention.head_count_kv", (0, 5, 16)),
                            ("attention.key_length", (7, 0)),
                            ("rope.dimension_count", (3, 7)),
                            ("block_count", (0, 1 << 31)), ("context_length", (0, (1 << 32) - 1)),
                            ("embedding_length", (0, (1 << 32) - 1)),
                            ("rope.freq_base", (0.0, -1.0, float("nan"), infinity)),
                            ("attention.layer_norm_rms_epsilon",
                             (0.0, -1.0, float("nan"), infinity)),
                            ("feed_forward_length", (0, (1 << 32) - 1))):
            for value in values:
                with self.subTest(key=key, value=value):
                    self.bad(key.rpartition(".")[2].split("_")[0],
                             gguf_file.encode(whole | {f"llama.{key}": value}))

    def test_c139_of_a_folder_too(self):
        infinity = float("inf")
        for key, values in (("num_attention_heads", (0, 3, 1 << 40)),
                            ("num_key_value_heads", (0, 3)), ("head_dim", (0, 7)),
                            ("num_hidden_layers", (0, 1 << 31, -1)),
                            ("max_position_embeddings", (0, 1 << 63)),
                            ("rope_theta", (0, -1, infinity)), ("rms_norm_eps", (0, -1)),
                            ("intermediate_size", (0, 1 << 40)), ("hidden_size", (0, 1 << 40))):
            for value in values:
                with self.subTest(key=key, value=value):
                    model = hf_folder.Llama()
                    model.config[key] = value
                    self.bad_folder("config.json", model)

    def bad_tensors(self, pattern, raw):
        folder = pathlib.Path(hf_folder.write(self.path("folder"), hf_folder.Gpt2()))
        (folder / "model.safetensors").write_bytes(raw)
        self.refused(1, pattern, "inspect", folder)

    def test_c141_tensors_tile_their_file(self):
        overlap = (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
                   b'"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}')
        self.assertEqual(len(overlap), 0x6c)
        self.bad_tensors("begins at byte 4", struct.pack("<Q", 0x6c) + overlap + bytes(12))
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        shared = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        for header, size, why in (
                ({f"t{i}": shared for i in range(10)}, 16, "begins at byte 0"),
                ({"a": one, "b": one | {"data_offsets": [8, 12]}}, 12, "begins at byte 8"),
                ({"a": one | {"data_offsets": [4, 8]}}, 8, "begins at byte 4"),
                ({"a": one}, 5, "1 bytes follow"), ({"a": one}, 3, "data_offsets")):
            self.bad_tensors(why, hf_folder.encode(header, bytes(size)))

    def test_c143_a_type_that_is_not_known_is_no_way_around_the_checks(self):
        header = b'{"t":{"dtype":"F99","shape":[1],"data_offsets":[18446744073709551612,4]}}'
        self.assertEqual(len(header), 0x49)
        self.bad_tensors("dtype|data_offsets", struct.pack("<Q", 0x49) + header + bytes(4))
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        for change in ({"dtype": "f32"}, {"dtype": None}, {"dtype": 3}, {"dtype": ""},
                       {"data_offsets": [0, 1 << 64]}, {"data_offsets": [0, -4]},
                       {"data_offsets": [0, 4, 8]}, {"shape": [(1 << 62) + 1]}):
            self.bad_tensors("dtype|data_offsets|shape", hf_folder.encode(
                {"t": one | change}, bytes(4)))
        # Another type of numbers than expected is converted, or refused, never taken for them.
        wanted = self.kvasir("inspect", hf_folder.write(self.path("a"), hf_folder.Gpt2("F16")))
        self.assertIn("f16", wanted.text.lower())
        model = hf_folder.Gpt2()
        raw = hf_folder.safetensors(model.weights)
        size = struct.unpack("<Q", raw[:8])[0]
        self.bad_tensors("I32", raw[:8] + raw[8:8 + size].replace(b'"F32"', b'"I32"')
                         + raw[8 + size:])

    def test_c147_the_embedding_is_the_head_only_where_the_file_says_so(self):
        untied = hf_folder.Gpt2(tied=False)
        del untied.weights.tensors["lm_head.weight"]
        self.bad_folder("'lm_head.weight' is missing", untied)
        both = hf_folder.Gpt2(tied=True)
        both.weights.add("lm_head.weight", both.vocab, both.WIDTH)
        self.bad_folder("differs from the embedding", both)
        # By GGUF's convention a file without an output matrix uses the embedding.
        content = running.model(None, None, 16, tied=True)
        self.assertEqual(self.load(self.path("tied.gguf", content)).status, 0)


if __name__ == "__main__":
    running.main()
