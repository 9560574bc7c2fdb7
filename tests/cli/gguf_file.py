"""GGUF files (version 3) for tests: written, their metadata read; pieces in GPT-2's alphabet."""

import math
import struct

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
ALIGNMENT = 32


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value_of(value):
    """Type and bytes of a metadata value: bool, int, float, str, or a list of int, float or str."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<B", value)
    if isinstance(value, int):
        return U32, struct.pack("<I", value)
    if isinstance(value, float):
        return F32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, text(value)
    kind = {int: I32, float: F32, str: STRING}[type(value[0])]
    if kind == STRING:
        raw = b"".join(map(text, value))
    else:
        raw = struct.pack(f"<{len(value)}{'i' if kind == I32 else 'f'}", *value)
    return ARRAY, struct.pack("<IQ", kind, len(value)) + raw


def encode(metadata, tensors=()):
    """A file's bytes. tensors: (name, dimensions from the slowest on, list of float)."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, raw = value_of(value)
        out += text(key) + struct.pack("<I", kind) + raw
    data = b""
    for name, dimensions, numbers in tensors:
        out += text(name) + struct.pack("<I", len(dimensions))
        out += struct.pack(f"<{len(dimensions)}Q", *reversed(dimensions))
        out += struct.pack("<IQ", 0, len(data))
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        data += bytes(-len(data) % ALIGNMENT)
    return out + bytes(-len(out) % ALIGNMENT) + data


def write(path, metadata, tensors, values):
    """Writes a file piece by piece. tensors: (name, dimensions from the slowest on); values(count)
    gives the bytes of the next tensor's numbers."""
    count = {name: math.prod(dimensions) for name, dimensions in tensors}
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, value in metadata.items():
            kind, raw = value_of(value)
            file.write(text(key) + struct.pack("<I", kind) + raw)
        offset = 0
        for name, dimensions in tensors:
            file.write(text(name) + struct.pack("<I", len(dimensions)))
            file.write(struct.pack(f"<{len(dimensions)}Q", *reversed(dimensions)))
            file.write(struct.pack("<IQ", 0, offset))
            offset += -(-4 * count[name] // ALIGNMENT) * ALIGNMENT
        for name, _ in tensors:
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(values(count[name]))
        file.write(bytes(-file.tell() % ALIGNMENT))


def byte_alphabet():
    """The character that stands for each byte (bytes_to_unicode of GPT-2's encoder)."""
    visible = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    hidden = [b for b in range(256) if b not in visible]
    characters = {b: chr(b) for b in visible}
    return characters | {b: chr(256 + i) for i, b in enumerate(hidden)}


ALPHABET = byte_alphabet()


def piece(value):
    return "".join(ALPHABET[b] for b in value.encode())


def byte_level_vocabulary(merges, pre, control=("<|end|>",), user=()):
    """tokenizer.ggml.* of the 256 bytes, what the merges make, and special tokens; merges are pairs
    of texts."""
    tokens = [ALPHABET[b] for b in range(256)] + [piece(a + b) for a, b in merges]
    types = [1] * len(tokens) + [3] * len(control) + [4] * len(user)
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens + list(control) + list(user),
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": [f"{piece(a)} {piece(b)}" for a, b in merges],
            "tokenizer.ggml.eos_token_id": len(tokens)}


def gpt2_model(vocabulary, rows=None, width=8, context=16):
    """A GPT-2 of one layer whose weights are small numbers, around a vocabulary; rows: of its
    embedding, the vocabulary's tokens unless given."""
    rows = rows or len(vocabulary["tokenizer.ggml.tokens"])
    metadata = {"general.architecture": "gpt2", "gpt2.context_length": context,
                "gpt2.embedding_length": width, "gpt2.block_count": 1,
                "gpt2.feed_forward_length": width, "gpt2.attention.head_count": 2,
                "gpt2.attention.layer_norm_epsilon": 1e-5} | vocabulary
    shapes = {"token_embd.weight": (rows, width), "position_embd.weight": (context, width)}
    block = {"attn_norm": (width,), "attn_qkv": (3 * width, width), "attn_output": (width, width),
             "ffn_norm": (width,), "ffn_up": (width, width), "ffn_down": (width, width)}
    for name, shape in block.items():
        shapes[f"blk.0.{name}.weight"] = shape
        shapes[f"blk.0.{name}.bias"] = shape[:1]
    shapes |= {"output_norm.weight": (width,), "output_norm.bias": (width,)}
    tensors = []
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        numbers = [((i * 7 + len(name)) % 13 - 6) / 16 for i in range(count)]
        tensors.append((name, shape, numbers))
    return encode(metadata, tensors)


def read_metadata(path):
    """The metadata of a file: of the types that value_of writes."""
    with open(path, "rb") as file:
        def unpack(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def value(kind):
            if kind == STRING:
                return file.read(unpack("Q")).decode()
            if kind == ARRAY:
                element, count = unpack("I"), unpack("Q")
                return [value(element) for _ in range(count)]
            return unpack({U32: "I", I32: "i", F32: "f", BOOL: "?"}[kind])

        assert file.read(4) == b"GGUF" and unpack("I") == 3
        unpack("Q")  # How many tensors.
        pairs = [(value(STRING), value(unpack("I"))) for _ in range(unpack("Q"))]
        return dict(pairs)
