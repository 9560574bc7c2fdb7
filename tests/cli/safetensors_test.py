#!/usr/bin/env python3
"""Model folders of transformers: read, converted to GGUF and back, refused where they are wrong."""

import json
import pathlib
import shutil
import struct
import unittest

import hf_folder
import program
from dump_test import read_npy

TEXT = "abc d ee."
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
PUBLISHED = LLAMA3 | {"factor": 8.0, "original_max_position_embeddings": 8192}
SWAPPED = struct.pack(">Q", 2) + b"{}"


def models():
    """Every family; types, prefixes, tied heads and scalings among them."""
    windowed = hf_folder.Llama("qwen2", "F32")
    windowed.config |= {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1,
                        "layer_types": ["full_attention", "sliding_attention"]}
    return {
        "gpt2": hf_folder.Gpt2("F32"), "gpt2-f16": hf_folder.Gpt2("F16", prefix=""),
        "gpt2-untied": hf_folder.Gpt2("BF16", tied=False),
        "llama": hf_folder.Llama("llama", "F32"),
        "llama-bf16": hf_folder.Llama("llama", "BF16", prefix="", tied=True),
        "llama-linear": hf_folder.Llama("llama", "F16",
                                        scaling={"rope_type": "linear", "factor": 2.5}),
        "llama-scaled": hf_folder.Llama("llama", "F32", scaling=PUBLISHED),
        "qwen2": hf_folder.Llama("qwen2", "BF16", tied=True), "qwen2-window": windowed,
        "qwen3": hf_folder.Llama("qwen3", "F32")}


class SafetensorsTest(program.CliTest):
    def folder(self, model, name="model", shards=1):
        return hf_folder.write(self.path(name), model, shards)

    def logits(self, model, name="x"):
        path = self.path(f"{name}.npy")
        out = self.kvasir("logits", "-m", model, "-p", TEXT, "--out", path, "--json").json
        return out["token_ids"], pathlib.Path(path).read_bytes(), read_npy(path)

    def test_logits_are_those_of_the_description(self):
        for name, model in (models() | {"llama-3": hf_folder.Llama(scaling=LLAMA3)}).items():
            with self.subTest(model=name):
                ids, _, (shape, values) = self.logits(self.folder(model, name))
                rows, magnitude = model.forward(ids)
                self.assertEqual(shape, [len(ids), model.vocab])
                bound = model.roundings() * 2**-24 * magnitude
                differences = [abs(a - b) for a, b in zip(values, sum(rows, []))]
                self.assertLessEqual(max(differences), bound)
                self.assertGreater(max(differences), 0)

    def test_conversions_keep_the_bits(self):
        for name, model in models().items():
            with self.subTest(model=name):
                folder, gguf, back = self.folder(model, name), self.path("a.gguf"), self.path("b")
                self.kvasir("convert", folder, gguf)
                self.kvasir("convert", gguf, back, "--format", "safetensors")
                again = self.path("c.gguf")
                self.kvasir("convert", back, again)
                ids, bits, _ = self.logits(folder)
                for other in (gguf, back, again):
                    self.assertEqual(self.logits(other)[:2], (ids, bits), other)
                shapes = [{tensor["name"]: (tensor["shape"], tensor["dtype"]) for tensor in
                           self.kvasir("inspect", file, "--json").json["tensors"]}
                          for file in (folder, gguf, back, again)]
                self.assertEqual(shapes, shapes[:1] * 4)
                shutil.rmtree(back)

    def test_vocabularies_of_models_trained_here(self):
        """Character vocabularies out and in again: the same ids, names of tokens and draws."""
        for name in ("tiny", "grouped"):
            gguf, folder = program.SHARED / f"{name}.gguf", self.path(name)
            if name == "grouped":  # Its window has no words in config.json.
                self.refused(1, "sliding_window", "convert", gguf, folder, "--format",
                             "safetensors")
                self.assertFalse(pathlib.Path(folder).exists())
                continue
            self.kvasir("convert", gguf, folder, "--format", "safetensors")
            again = self.path("again.gguf")
            self.kvasir("convert", folder, again)
            infos = [self.kvasir("inspect", file, "--json").json for file in (gguf, again)]
            for info in infos:
                del info["metadata"]["general.name"]
            self.assertEqual(*infos)
            draws = [self.ids("-m", file, "-n", 20, "-p", "春 x")
                     for file in (gguf, folder, again)]
            self.assertEqual(draws, draws[:1] * 3)

    def test_every_command_takes_a_folder(self):
        folder = self.folder(hf_folder.Llama(), shards=3)
        whole = self.folder(hf_folder.Llama(), "whole")
        self.assertEqual(self.logits(folder), self.logits(whole))
        for path in (f"{folder}/model.safetensors.index.json", f"{whole}/model.safetensors"):
            self.assertEqual(self.logits(path), self.logits(whole))
        report = self.kvasir("verify", "-m", folder, "--trials", 2, "--seed", 1, "--json").json
        self.assertEqual(report["mismatches"], 0)
        text = self.path("text", "abcabc d ee. " * 8)
        self.kvasir("eval", "-m", folder, text)
        self.kvasir("next", "-m", folder, "abc")
        plan = self.kvasir("cache", "plan", "-m", folder, "--json").json
        self.assertEqual(plan["bytes_per_token"], 2 * 2 * 2 * 6 * 4)
        self.assertIn("qwen2", self.kvasir("inspect", self.folder(hf_folder.Llama("qwen2"), "q")
                                           ).text)
        out = self.path("q8.gguf")
        self.kvasir("convert", folder, out, "--dtype", "f16")
        self.kvasir("generate", "-m", out, "-n", 3, "--seed", 1, "-p", "a")

    def test_spaces_and_bytes(self):
        model = hf_folder.Llama()
        model.tokenizer = hf_folder.spaces_tokenizer()
        model.vocab = model.config["vocab_size"] = hf_folder.vocabulary_size(model.tokenizer)
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            model.weights.add(name, model.vocab, model.WIDTH)
        for led, expected in ((True, [1, 266]), (False, [1, 264])):
            model.tokenizer = hf_folder.spaces_tokenizer(led)
            folder = self.folder(model, f"led-{led}")
            gguf, back = self.path("s.gguf"), self.path("s")
            self.kvasir("convert", folder, gguf)
            self.kvasir("convert", gguf, back, "--format", "safetensors")
            for file in (folder, gguf, back):
                out = self.kvasir("logits", "-m", file, "-p", "abc", "--out", self.path("l.npy"),
                                  "--json").json
                self.assertEqual(out["token_ids"], expected)
                for text in ("ab a b", " a", "é", "abcabc  c", "<s>"):
                    ids = self.kvasir("tokenize", "-m", file, "--json", "--", text
                                      ).json["token_ids"]
                    back_text = self.kvasir("detokenize", "-m", file, "--json", "--", *ids)
                    self.assertEqual(back_text.json["text"], text)
            shutil.rmtree(back)

    def test_chat_template_and_ends(self):
        folder = pathlib.Path(self.folder(hf_folder.Gpt2()))
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"eos_token": {"content": "<|end|>"}, "chat_template": "{{ messages }}"}))
        info = self.kvasir("inspect", folder, "--json").json["metadata"]
        self.assertEqual(info["tokenizer.chat_template"], "{{ messages }}")
        self.assertEqual(info["tokenizer.ggml.eos_token_id"], 14)
        gguf, back = self.path("a.gguf"), self.path("b")
        self.kvasir("convert", folder, gguf)
        self.kvasir("convert", gguf, back, "--format", "safetensors")
        notes = json.loads((pathlib.Path(back) / "tokenizer_config.json").read_text())
        self.assertEqual(notes["chat_template"], "{{ messages }}")

    def test_usage(self):
        folder, out = self.folder(hf_folder.Gpt2()), self.path("out")
        self.refused(2, "q8_0|Q8_0", "convert", folder, out, "--format", "safetensors", "--dtype",
                     "q8_0")
        self.refused(2, "pickle", "convert", folder, out, "--format", "pickle")
        self.refused(2, "its own", "convert", folder, out, "--tokenizer", folder)
        self.refused(2, "is a folder", "convert", folder, self.path("x.safetensors"), "--format",
                     "safetensors")
        self.refused(1, "without config.json", "generate", "-m", self.home, "-p", "a")
        for command in (("generate", "-p", "a"), ("inspect",)):
            flags = ("-m", self.path("no")) if command[0] == "generate" else (self.path("no"),)
            self.refused(1, "no", *command, *flags)


class BadFolderTest(program.CliTest):
    """One line for each, and no file written."""

    def setUp(self):
        super().setUp()
        self.made = hf_folder.Gpt2()
        self.folder = pathlib.Path(hf_folder.write(self.path("m"), self.made))

    def bad(self, pattern, model=None):
        folder = self.folder if model is None else hf_folder.write(self.path("bad"), model)
        out = self.path("out.gguf")
        run = self.refused(1, pattern, "convert", folder, out)
        self.assertFalse(pathlib.Path(out).exists())
        return run

    def test_config(self):
        for family, changes in (
                (hf_folder.Gpt2, {"activation_function": "gelu", "scale_attn_weights": False,
                                  "n_embd": 13, "n_layer": "2", "n_head": 0, "n_positions": -1,
                                  "layer_norm_epsilon": 2, "novel_bias": 0.5, "model_type": "bert",
                                  "vocab_size": 10, "n_inner": 1 << 62, "eos_token_id": "x",
                                  "bos_token_id": [1, 2], "add_cross_attention": True}),
                (hf_folder.Llama, {"hidden_act": "gelu", "attention_bias": True, "mlp_bias": True,
                                   "head_dim": 7, "rope_theta": 0, "num_key_value_heads": 3,
                                   "rope_scaling": {"rope_type": "yarn", "factor": 2},
                                   "quantization_config": {"bits": 4}, "sliding_window": 4,
                                   "num_hidden_layers": 1 << 40,
                                   "partial_rotary_factor": 0.5, "vocab_size": 1 << 23})):
            for key, value in changes.items():
                with self.subTest(key=key):
                    model = family()
                    model.config[key] = value
                    self.bad("config.json|tensor|tokenizer.json", model)
        qwen = hf_folder.Llama("qwen2")
        for change in ({"layer_types": ["full_attention"]}, {"layer_types": ["odd", "odd"]},
                       {"layer_types": ["sliding_attention"] * 2}, {"use_sliding_window": True,
                                                                    "max_window_layers": 0}):
            kept = dict(qwen.config)
            qwen.config |= change
            self.bad("layer_types|sliding_window", qwen)
            qwen.config = kept
        for change in ({"rope_type": "llama3", "factor": 4}, {"factor": 2, "rope_type": "linear",
                                                             "beta_fast": 1}, {"type": "dynamic"},
                       LLAMA3 | {"high_freq_factor": 0.5}, {"rope_type": "linear"}):
            self.bad("rope_scaling", hf_folder.Llama(scaling=change))

    def test_json(self):
        for file in ("config.json", "tokenizer.json"):
            whole = (self.folder / file).read_text()
            for text in ("", "[]", "null", whole + "x", whole[:-1], '{"a":1,"a":2}',
                         "[" * 100000, '{"model_type": "\xff"}',
                         whole.replace("{", "{\n\"a\":NaN,", 1)):
                (self.folder / file).write_bytes(text.encode("latin-1", "replace"))
                self.bad(file)
            (self.folder / file).write_text(whole)
        (self.folder / "tokenizer.json").unlink()
        self.bad("tokenizer.json")

    def test_tensors(self):
        def changed(change):
            model = hf_folder.Gpt2()
            change(model.weights.tensors)
            return model
        name = "transformer.h.1.attn.c_attn.weight"
        self.bad(f"'{name}' is missing", changed(lambda t: t.pop(name)))
        self.bad("asks for", changed(lambda t: t.update({name: ([36, 12], t[name][1])})))
        self.bad("'odd' is not one", changed(lambda t: t.update({"odd": ([1], [0.0])})))
        self.bad("differs from the embedding", changed(lambda t: t.update(
            {"lm_head.weight": (t["transformer.wte.weight"][0],
                                [1.0] * len(t["transformer.wte.weight"][1]))})))
        # The same head is the embedding; a causal mask follows from the config.
        fine = changed(lambda t: t.update(
            {"lm_head.weight": t["transformer.wte.weight"],
             "transformer.h.0.attn.bias": ([1, 1, 2, 2], [1.0] * 4)}))
        self.kvasir("inspect", hf_folder.write(self.path("fine"), fine))

    def test_cut_files(self):
        for file in ("config.json", "tokenizer.json", "model.safetensors"):
            whole = (self.folder / file).read_bytes()
            for percent in range(100):
                (self.folder / file).write_bytes(whole[:len(whole) * percent // 100])
                self.bad(file)
            (self.folder / file).write_bytes(whole)
        self.kvasir("inspect", self.folder)

    def test_headers(self):
        one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        four = bytes(4)
        for pattern, raw in (
                ("empty", b""), ("header takes", struct.pack("<Q", 1 << 63)),
                ("header takes", struct.pack("<Q", 100) + b"{}"), ("big-endian", SWAPPED),
                ("header takes 0", struct.pack("<Q", 0)), ("begins with", hf_folder.encode(b"[]")),
                ("JSON", hf_folder.encode(b"{x")), ("dtype is 'F31'", hf_folder.encode(
                    {"a": one | {"dtype": "F31"}}, four)),
                ("two members", hf_folder.encode(b'{"a":1,"a":2}')),
                ("data_offsets", hf_folder.encode({"a": one | {"data_offsets": [0, 8]}}, four)),
                ("data_offsets", hf_folder.encode({"a": one | {"data_offsets": [4, 0]}}, four)),
                ("shape", hf_folder.encode({"a": one | {"shape": [2]}}, four)),
                ("shape", hf_folder.encode({"a": one | {"shape": [1 << 63, 2]}}, four)),
                ("shape", hf_folder.encode({"a": one | {"shape": [1] * 5}}, four)),
                ("shape", hf_folder.encode({"a": one | {"shape": [-1]}}, four)),
                ("ends at 4", hf_folder.encode({"a": one, "b": one}, four)),
                ("ends at 0", hf_folder.encode({"a": one | {"data_offsets": [4, 8]}}, bytes(8))),
                ("4 bytes follow", hf_folder.encode({"a": one}, bytes(8))),
                ("'x' is no field", hf_folder.encode({"a": one | {"x": 1}}, four)),
                ("dtype is missing", hf_folder.encode({"a": {}}, b"")),
                ("__metadata__", hf_folder.encode({"__metadata__": {"a": 1}}, b"")),
                ("missing", hf_folder.encode({}))):
            (self.folder / "model.safetensors").write_bytes(raw)
            self.bad(pattern)

    def test_index(self):
        folder = pathlib.Path(hf_folder.write(self.path("s"), self.made, shards=2))
        path = folder / "model.safetensors.index.json"
        whole = json.loads(path.read_text())
        self.folder = folder
        name, file = next(iter(whole["weight_map"].items()))
        other = "model-00002-of-00002.safetensors"
        self.assertNotEqual(file, other)
        for pattern, change in (("is not in", {name: other}), ("does not say", {name: None}),
                                ("names no safetensors", {name: "../x.safetensors"}),
                                ("names no safetensors", {name: 3}),
                                ("absent.safetensors", {name: "absent.safetensors"})):
            index = whole["weight_map"] | change
            path.write_text(json.dumps({"weight_map": {k: v for k, v in index.items()
                                                       if v is not None}}))
            self.bad(pattern)
        path.write_text("{}")
        self.bad("weight_map")

    def test_tokenizer(self):
        def byte_level(change, pattern):
            model = hf_folder.Gpt2()
            change(model.tokenizer)
            self.bad(pattern, model)
        byte_level(lambda t: t.update(version="2.0"), "version is '2.0'")
        byte_level(lambda t: t["model"].update(type="Unigram"), "'Unigram'")
        byte_level(lambda t: t["model"].update(ignore_merges=True), "ignore_merges")
        byte_level(lambda t: t["model"].update(dropout=0.1), "dropout")
        byte_level(lambda t: t["model"].update(novel=1), "'novel'")
        byte_level(lambda t: t["model"].update(continuing_subword_prefix="##"), "subword")
        byte_level(lambda t: t["model"]["vocab"].update(x=14), "one id, 14|is 'x'")
        byte_level(lambda t: t["model"]["vocab"].update(x=1 << 40), "id of token 'x'")
        byte_level(lambda t: t["model"]["vocab"].update(x=99), "vocab_size is 17")
        byte_level(lambda t: t["model"]["merges"].append("a"), "merge 4")
        byte_level(lambda t: t["model"]["merges"].append("a q"), "merge 4")
        byte_level(lambda t: t["model"]["merges"].append(["a", "b", "c"]), "merge 4")
        byte_level(lambda t: t["pre_tokenizer"].update(add_prefix_space=True), "add_prefix_space")
        byte_level(lambda t: t["pre_tokenizer"].update(use_regex=False), "use_regex")
        byte_level(lambda t: t.update(pre_tokenizer={"type": "Whitespace"}), "'Whitespace'")
        byte_level(lambda t: t.update(pre_tokenizer=None), "byte_fallback")
        byte_level(lambda t: t.update(normalizer={"type": "NFKC"}), "'NFKC'")
        byte_level(lambda t: t.update(normalizer={"type": "NFC"}), "must be null")
        byte_level(lambda t: t.update(post_processor={"type": "BertProcessing"}), "'Bert")
        byte_level(lambda t: t.update(decoder={"type": "WordPiece"}), "'WordPiece'")
        byte_level(lambda t: t["added_tokens"].append(hf_folder.added(15, "<x>", False) | {
            "lstrip": True}), "lstrip")
        split = hf_folder.byte_level_tokenizer(r"\s+|\S+")["pre_tokenizer"]
        byte_level(lambda t: t.update(pre_tokenizer=split), "regular expression")
        split["pretokenizers"][0]["behavior"] = "Removed"
        byte_level(lambda t: t.update(pre_tokenizer=split), "Isolated")

        def spaces(change, pattern):
            model = hf_folder.Llama()
            model.tokenizer = hf_folder.spaces_tokenizer()
            change(model.tokenizer)
            model.vocab = model.config["vocab_size"] = hf_folder.vocabulary_size(model.tokenizer)
            for name in ("model.embed_tokens.weight", "lm_head.weight"):
                model.weights.add(name, model.vocab, model.WIDTH)
            self.bad(pattern, model)
        merges = [["a", "b"], ["ab", "c"], ["▁", "a"], ["▁", "abc"]]
        # 'c' has no merge with what is left of it.
        spaces(lambda t: t["model"].update(merges=merges[:3]), "no merge makes '▁abc'")
        spaces(lambda t: t["model"]["vocab"].update(zc=267), "no merge makes 'zc' of 'z' and 'c'")
        spaces(lambda t: t["model"].update(merges=[*merges, ["a", "b"]]), "stand together")
        spaces(lambda t: t.update(normalizer=None), "normalizer")
        spaces(lambda t: t["added_tokens"].append(hf_folder.added(267, "<x>", False)), "led by")
        spaces(lambda t: t["model"]["vocab"].update({"a" * 300: 267}), "300 bytes")

    def test_large_announcements_take_no_memory(self):
        model = hf_folder.Llama()
        model.config["vocab_size"] = (1 << 24) - 1  # 600 MB of pieces, if it were believed.
        self.bad("asks for", model)


if __name__ == "__main__":
    program.main()
