"""Writes tiny model folders as transformers does, and computes their logits in double precision.

Written from the descriptions of the models, not from the program under test: rotary halves, GPT-2's
transposed matrices and the names are those of the folders.
"""

import copy
import json
import math
import pathlib
import random
import struct

import gguf_file

EPS = 1e-5
LAYERS = 2
LETTERS = "abcdefgh ."
MERGES = (("a", "b"), ("ab", "c"), (" ", "d"), ("e", "e"))
LLAMA3_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_REGEX = LLAMA3_REGEX.replace(r"\p{N}{1,3}", r"\p{N}")
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def added(identity, text, special=True):
    return {"id": identity, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special}


def byte_level_tokenizer(regex=None, start=False, letters=None):
    """Some bytes, some merges, an end token; regex: of Llama 3 or Qwen2, else GPT-2's; letters:
    pieces of single bytes."""
    pieces = letters or [gguf_file.piece(c) for c in LETTERS]
    pieces = pieces + [gguf_file.piece(a + b) for a, b in MERGES] + ["<|end|>"]
    end = len(pieces) - 1
    steps = BYTE_LEVEL | {"use_regex": True}
    if regex:
        split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
                 "invert": False}
        steps = {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL | {"use_regex": False}]}
    frame = {"type": "TemplateProcessing", "special_tokens": {},
             "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}}]}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(end, "<|end|>")],
            "normalizer": {"type": "NFC"} if regex == QWEN2_REGEX else None,
            "pre_tokenizer": steps, "post_processor": frame if start else None,
            "decoder": BYTE_LEVEL | {"use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False,
                      "fuse_unk": False, "ignore_merges": regex == LLAMA3_REGEX,
                      "vocab": {piece: i for i, piece in enumerate(pieces)},
                      "merges": [f"{gguf_file.piece(a)} {gguf_file.piece(b)}" for a, b in MERGES]}}


def spaces_tokenizer(led=True, merged=True):
    """As Llama 2's: ▁ for a space, byte tokens, merges in pairs; without them, of characters."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "a", "b", "c"]
    merges = [["a", "b"], ["ab", "c"], ["▁", "a"], ["▁", "abc"]] if merged else []
    pieces += [a + b for a, b in merges]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = [{"type": "Prepend", "prepend": "▁"}] if led else []
    return {"version": "1.0", "added_tokens": [added(i, pieces[i]) for i in range(3)],
            "normalizer": {"type": "Sequence", "normalizers": [*prepend, replace]},
            "pre_tokenizer": None,
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}}]},
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"},
                                                         {"type": "Fuse"}]},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                      "vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": merges}}


def vocabulary_size(tokenizer):
    return max([*tokenizer["model"]["vocab"].values(),
                *(token["id"] for token in tokenizer["added_tokens"])]) + 1


class Weights:
    """Tensors by name: (shape, numbers as they are stored)."""

    def __init__(self, dtype, seed=1):
        self.dtype = dtype
        self.random = random.Random(seed)
        self.tensors = {}

    def add(self, name, *shape, scale=0.5, shift=0.0):
        count = math.prod(shape)
        numbers = [shift + scale * self.random.uniform(-1, 1) for _ in range(count)]
        self.tensors[name] = (list(shape), unpack(self.dtype, pack(self.dtype, numbers)))

    def matrix(self, name):
        (rows, columns), numbers = self.tensors[name]
        return [numbers[i * columns:(i + 1) * columns] for i in range(rows)]

    def vector(self, name):
        return self.tensors[name][1]


def pack(dtype, numbers):
    if dtype == "F32":
        return struct.pack(f"<{len(numbers)}f", *numbers)
    if dtype == "F16":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    raw = struct.pack(f"<{len(numbers)}f", *numbers)  # BF16: the upper half, cut off.
    return b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))


def unpack(dtype, raw):
    if dtype == "F32":
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))
    if dtype == "F16":
        return list(struct.unpack(f"<{len(raw) // 2}e", raw))
    wide = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
    return list(struct.unpack(f"<{len(wide) // 4}f", wide))


def encode(header, data=b""):
    """A safetensors file of a header (an object, or bytes) and the data behind it."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def safetensors(weights, names=None):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, numbers) in weights.tensors.items():
        if names is not None and name not in names:
            continue
        raw = pack(weights.dtype, numbers)
        header[name] = {"dtype": weights.dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return encode(header, data)


class Gpt2:
    """A model of transformers' GPT2LMHeadModel."""

    HEADS, WIDTH, INNER, CONTEXT = 2, 12, 20, 12

    def __init__(self, dtype="F32", prefix="transformer.", tied=True, tokenizer=None):
        self.prefix, self.tied = prefix, tied
        self.tokenizer = tokenizer or byte_level_tokenizer()
        self.vocab = vocabulary_size(self.tokenizer) + 2  # Two rows that no token has.
        self.config = {
            "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": LAYERS,
            "n_head": self.HEADS, "n_embd": self.WIDTH, "n_inner": self.INNER,
            "n_positions": self.CONTEXT, "activation_function": "gelu_new",
            "layer_norm_epsilon": EPS,
            "vocab_size": self.vocab, "tie_word_embeddings": tied, "attn_pdrop": 0.1,
            "eos_token_id": 14, "bos_token_id": 14, "scale_attn_weights": True,
            "transformers_version": "4.40.0", "torch_dtype": "float32", "n_ctx": self.CONTEXT}
        w = self.weights = Weights(dtype)
        width, inner = self.WIDTH, self.INNER
        w.add(f"{prefix}wte.weight", self.vocab, width)
        w.add(f"{prefix}wpe.weight", self.CONTEXT, width, scale=0.2)
        for i in range(LAYERS):
            at = f"{prefix}h.{i}."
            for norm in ("ln_1", "ln_2"):
                w.add(f"{at}{norm}.weight", width, shift=1.0)
                w.add(f"{at}{norm}.bias", width)
            for name, inputs, outputs in (("attn.c_attn", width, 3 * width),
                                          ("attn.c_proj", width, width),
                                          ("mlp.c_fc", width, inner), ("mlp.c_proj", inner, width)):
                w.add(f"{at}{name}.weight", inputs, outputs)
                w.add(f"{at}{name}.bias", outputs)
        w.add(f"{prefix}ln_f.weight", width, shift=1.0)
        w.add(f"{prefix}ln_f.bias", width)
        if not tied:
            w.add("lm_head.weight", self.vocab, width)

    def forward(self, ids):
        """Logits by position, and the largest sum of absolute terms of one."""
        w, p = self.weights, self.prefix
        wte, wpe = w.matrix(f"{p}wte.weight"), w.matrix(f"{p}wpe.weight")
        rows = [[a + b for a, b in zip(wte[t], wpe[i])] for i, t in enumerate(ids)]
        for i in range(LAYERS):
            at = f"{p}h.{i}."
            conv = lambda name, x: conv1d(x, w.matrix(f"{at}{name}.weight"),  # noqa: E731
                                          w.vector(f"{at}{name}.bias"))
            normed = [self.norm(f"{at}ln_1", row) for row in rows]
            qkv = [conv("attn.c_attn", row) for row in normed]
            n, d = self.WIDTH, self.WIDTH // self.HEADS
            seen = attention([row[:n] for row in qkv], [row[n:2 * n] for row in qkv],
                             [row[2 * n:] for row in qkv], self.HEADS, self.HEADS, d)
            rows = [added_up(row, conv("attn.c_proj", x)) for row, x in zip(rows, seen)]
            for t, row in enumerate(rows):
                middle = [gelu(x) for x in conv("mlp.c_fc", self.norm(f"{at}ln_2", row))]
                rows[t] = added_up(row, conv("mlp.c_proj", middle))
        head = wte if self.tied else w.matrix("lm_head.weight")
        self.last = [self.norm(f"{p}ln_f", row) for row in rows], head
        return logits_of(*self.last)

    def norm(self, name, row):
        mean = sum(row) / len(row)
        variance = sum((x - mean) ** 2 for x in row) / len(row)
        return [(x - mean) / math.sqrt(variance + EPS) * g + b for x, g, b in zip(
            row, self.weights.vector(f"{name}.weight"), self.weights.vector(f"{name}.bias"))]

    def roundings(self):
        """On the longest way to a logit: each step of a sum, each operation of a norm and so on."""
        norm, gelu_steps = 14, 8
        layer = 2 * norm + self.WIDTH + self.WIDTH // self.HEADS + 2 * self.CONTEXT + 4 + (
            self.WIDTH + 2 + self.WIDTH + gelu_steps + self.INNER + 2)
        return 1 + LAYERS * layer + norm + self.WIDTH


class Llama:
    """A model of transformers' LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM."""

    HEADS, KV_HEADS, HEAD_DIM, WIDTH, INNER, CONTEXT = 4, 2, 6, 16, 20, 12
    BASE = 100.0  # Low, so that every pair of channels turns far within a short context.

    def __init__(self, family="llama", dtype="F32", prefix="model.", tied=False, scaling=None,
                 tokenizer=None):
        self.family, self.prefix, self.tied, self.scaling = family, prefix, tied, scaling
        self.tokenizer = tokenizer or (
            byte_level_tokenizer(LLAMA3_REGEX, start=True) if family == "llama"
            else byte_level_tokenizer(QWEN2_REGEX))
        self.vocab = vocabulary_size(self.tokenizer)
        classes = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM",
                   "qwen3": "Qwen3ForCausalLM"}
        self.config = {
            "architectures": [classes[family]], "model_type": family, "hidden_act": "silu",
            "hidden_size": self.WIDTH, "intermediate_size": self.INNER,
            "num_hidden_layers": LAYERS, "num_attention_heads": self.HEADS,
            "num_key_value_heads": self.KV_HEADS, "head_dim": self.HEAD_DIM,
            "max_position_embeddings": self.CONTEXT, "rms_norm_eps": EPS, "rope_theta": self.BASE,
            "tie_word_embeddings": tied, "vocab_size": self.vocab, "eos_token_id": [14],
            "initializer_range": 0.02, "use_cache": True, "torch_dtype": "bfloat16"}
        self.config["rope_scaling"] = scaling
        w = self.weights = Weights(dtype)
        q, kv = self.HEADS * self.HEAD_DIM, self.KV_HEADS * self.HEAD_DIM
        w.add(f"{prefix}embed_tokens.weight", self.vocab, self.WIDTH)
        for i in range(LAYERS):
            at = f"{prefix}layers.{i}."
            for norm in ("input_layernorm", "post_attention_layernorm"):
                w.add(f"{at}{norm}.weight", self.WIDTH, shift=1.0)
            for name, outputs in (("q", q), ("k", kv), ("v", kv)):
                w.add(f"{at}self_attn.{name}_proj.weight", outputs, self.WIDTH)
                if family == "qwen2":
                    w.add(f"{at}self_attn.{name}_proj.bias", outputs)
            w.add(f"{at}self_attn.o_proj.weight", self.WIDTH, q)
            if family == "qwen3":
                w.add(f"{at}self_attn.q_norm.weight", self.HEAD_DIM, shift=1.0)
                w.add(f"{at}self_attn.k_norm.weight", self.HEAD_DIM, shift=1.0)
            w.add(f"{at}mlp.gate_proj.weight", self.INNER, self.WIDTH)
            w.add(f"{at}mlp.up_proj.weight", self.INNER, self.WIDTH)
            w.add(f"{at}mlp.down_proj.weight", self.WIDTH, self.INNER)
        w.add(f"{prefix}norm.weight", self.WIDTH, shift=1.0)
        if not tied:
            w.add("lm_head.weight", self.vocab, self.WIDTH)

    def frequencies(self):
        """By pair of channels, as transformers scales them."""
        out = [self.BASE ** (-2 * i / self.HEAD_DIM) for i in range(self.HEAD_DIM // 2)]
        scaling = self.scaling or {}
        kind = scaling.get("rope_type", "default")
        if kind == "linear":
            out = [f / scaling["factor"] for f in out]
        if kind == "llama3":
            original = scaling["original_max_position_embeddings"]
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            for i, f in enumerate(out):
                wave = 2 * math.pi / f
                if wave > original / low:
                    out[i] = f / scaling["factor"]
                elif wave >= original / high:
                    smooth = (original / wave - low) / (high - low)
                    out[i] = (1 - smooth) * f / scaling["factor"] + smooth * f
        return out

    def rotated(self, head, position):
        """Channel i and i + d/2 turn together."""
        half, out = self.HEAD_DIM // 2, list(head)
        for i, frequency in enumerate(self.frequencies()):
            c, s = math.cos(position * frequency), math.sin(position * frequency)
            out[i], out[i + half] = (head[i] * c - head[i + half] * s,
                                     head[i + half] * c + head[i] * s)
        return out

    def heads(self, at, name, count, rows):
        """Queries or keys [positions][count · head_dim], normed if the family does, turned."""
        out = []
        for position, row in enumerate(rows):
            projected = self.project(f"{at}self_attn.{name}_proj", row)
            turned = []
            for h in range(count):
                head = projected[h * self.HEAD_DIM:(h + 1) * self.HEAD_DIM]
                if self.family == "qwen3":
                    head = rms_norm(head, self.weights.vector(f"{at}self_attn.{name}_norm.weight"))
                turned += self.rotated(head, position)
            out.append(turned)
        return out

    def project(self, name, row):
        out = product(row, self.weights.matrix(f"{name}.weight"))
        if f"{name}.bias" in self.weights.tensors:
            out = added_up(out, self.weights.vector(f"{name}.bias"))
        return out

    def forward(self, ids):
        w, p = self.weights, self.prefix
        embedding = w.matrix(f"{p}embed_tokens.weight")
        rows = [list(embedding[t]) for t in ids]
        for i in range(LAYERS):
            at = f"{p}layers.{i}."
            normed = [rms_norm(row, w.vector(f"{at}input_layernorm.weight")) for row in rows]
            seen = attention(self.heads(at, "q", self.HEADS, normed),
                             self.heads(at, "k", self.KV_HEADS, normed),
                             [self.project(f"{at}self_attn.v_proj", row) for row in normed],
                             self.HEADS, self.KV_HEADS, self.HEAD_DIM, self.windows(i))
            rows = [added_up(row, self.project(f"{at}self_attn.o_proj", x))
                    for row, x in zip(rows, seen)]
            for t, row in enumerate(rows):
                x = rms_norm(row, w.vector(f"{at}post_attention_layernorm.weight"))
                gate = [g / (1 + math.exp(-g)) for g in self.project(f"{at}mlp.gate_proj", x)]
                up = self.project(f"{at}mlp.up_proj", x)
                rows[t] = added_up(row, self.project(f"{at}mlp.down_proj",
                                                     [a * b for a, b in zip(gate, up)]))
        head = embedding if self.tied else w.matrix("lm_head.weight")
        self.last = [rms_norm(row, w.vector(f"{p}norm.weight")) for row in rows], head
        return logits_of(*self.last)

    def windows(self, layer):
        types = self.config.get("layer_types", ["full_attention"] * LAYERS)
        return self.config["sliding_window"] if types[layer] == "sliding_attention" else None

    def roundings(self):
        norm, turn, silu = 12, 4, 5
        query = self.WIDTH + 1 + norm + turn
        layer = 2 * norm + query + self.HEAD_DIM + 2 * self.CONTEXT + 4 + (
            self.HEADS * self.HEAD_DIM + 1 + self.WIDTH + silu + 1 + self.INNER + 1)
        return LAYERS * layer + norm + self.WIDTH


def product(row, matrix):
    return [sum(a * b for a, b in zip(row, weights)) for weights in matrix]


def conv1d(row, matrix, bias):
    """matrix [inputs][outputs]"""
    return [sum(x * matrix[i][j] for i, x in enumerate(row)) + b for j, b in enumerate(bias)]


def added_up(left, right):
    return [a + b for a, b in zip(left, right)]


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def rms_norm(row, gain):
    scale = math.sqrt(sum(x * x for x in row) / len(row) + EPS)
    return [x / scale * g for x, g in zip(row, gain)]


def attention(q, k, v, heads, kv_heads, width, window=None):
    """[positions][heads · width] of queries, and of as many or fewer heads of keys and values."""
    window = window or len(q)
    out = []
    for t, query in enumerate(q):
        row = []
        for h in range(heads):
            at, shared = h * width, h // (heads // kv_heads) * width
            visible = range(max(0, t - window + 1), t + 1)
            scores = [sum(query[at + c] * k[j][shared + c] for c in range(width)) /
                      math.sqrt(width) for j in visible]
            weights = [math.exp(score - max(scores)) for score in scores]
            row += [sum(weight * v[j][shared + c] for weight, j in zip(weights, visible)) /
                    sum(weights) for c in range(width)]
        out.append(row)
    return out


def logits_of(rows, head):
    return [product(row, head) for row in rows], magnitude_of(rows, head)


def magnitude_of(rows, head):
    """The largest sum of absolute terms of a logit."""
    return max(sum(abs(a * b) for a, b in zip(row, weights)) for row in rows for weights in head)


def root_of_squares(rows, head):
    """The largest root of the sum of a logit's squared terms."""
    return max(math.sqrt(sum((a * b) ** 2 for a, b in zip(row, weights)))
               for row in rows for weights in head)


def by_blocks(row, size=32):
    """The largest number of its block in place of each."""
    return [max(map(abs, row[i - i % size:i - i % size + size])) for i in range(len(row))]


def with_weights(model, path):
    """The same model with the tensors of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    other = copy.copy(model)
    other.weights = Weights("F32")
    for name, entry in json.loads(raw[8:end]).items():
        if name != "__metadata__":
            begin, stop = entry["data_offsets"]
            other.weights.tensors[name] = (entry["shape"], unpack(entry["dtype"],
                                                                  raw[end + begin:end + stop]))
    return other


def write(folder, model, shards=1):
    """The model's folder; with shards, an index and as many files."""
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config))
    (folder / "tokenizer.json").write_text(json.dumps(model.tokenizer))
    if shards == 1:
        (folder / "model.safetensors").write_bytes(safetensors(model.weights))
        return str(folder)
    names, weight_map = list(model.weights.tensors), {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = names[i::shards]
        weight_map |= {name: file for name in part}
        (folder / file).write_bytes(safetensors(model.weights, part))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}))
    return str(folder)
