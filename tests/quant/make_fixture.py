#!/usr/bin/env python3
"""Blocks of GGUF's quantised types, from their fields, and the numbers they mean.

usage: make_fixture.py [--check] [FOLDER]

Writes FOLDER/TYPE.bin for every type (default: data/ beside this file): the blocks' bytes, then
their numbers as f32. Nothing is decoded here: fields are drawn, packed bit by bit as the format
lays them out, and put into the type's formula, so that a decoder can be checked against both.
FOLDER/encode_TYPE.bin holds f32 numbers, then the blocks that the reference rounding makes of them.
--check compares instead of writing; exit status 1 if a file differs.
"""

import argparse
import pathlib
import random
import struct
import sys

SCALES = [1.0, -0.5, 0.0078125, 0.1, 3.0517578125e-05, 6.0e-08, -65504.0, 0.0]  # Subnormals too.


def f32(x):
    """The nearest f32. Sums and products here are exact in f64, so this rounds once."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def half(x):
    """An f16: its bytes, and the number they mean."""
    raw = struct.pack("<e", x)
    return raw, struct.unpack("<e", raw)[0]


def bits_to_bytes(fields):
    """(value, width) fields, lowest bits first, as bytes."""
    total, at = 0, 0
    for value, width in fields:
        assert 0 <= value < 1 << width
        total |= value << at
        at += width
    return total.to_bytes(at // 8, "little")


def nibbles(values):
    """Of 32 values the low bits first: byte i holds value i and value i + 16."""
    return bits_to_bytes([(v, 4) for i in range(16) for v in (values[i], values[i + 16])])


class Blocks:
    """One method a type: fields drawn from rng, bytes and numbers returned."""

    def __init__(self, rng):
        self.rng = rng

    def draw(self, count, width):
        return [self.rng.randrange(1 << width) for _ in range(count)]

    def Q8_0(self, i):
        raw, d = half(SCALES[i % len(SCALES)])
        q = self.rng.sample(range(-128, 128), 32)
        return raw + struct.pack("<32b", *q), [d * v for v in q]

    def small(self, i, centre, fifth, minimum):
        raw, d = half(SCALES[i % len(SCALES)])
        m = 0.0
        if minimum:
            more, m = half(SCALES[(i * 3 + 1) % len(SCALES)])
            raw += more
        q = self.draw(32, 5 if fifth else 4)
        if fifth:
            raw += bits_to_bytes([(v >> 4, 1) for v in q])
        return raw + nibbles([v & 15 for v in q]), [d * (v - centre) + m for v in q]

    def Q4_0(self, i):
        return self.small(i, 8, False, False)

    def Q4_1(self, i):
        return self.small(i, 0, False, True)

    def Q5_0(self, i):
        return self.small(i, 16, True, False)

    def Q5_1(self, i):
        return self.small(i, 0, True, True)

    def six_bit_scales(self, scales, minima):
        low = [(scales[g], scales[g + 4] >> 4) for g in range(4)]
        low += [(minima[g], minima[g + 4] >> 4) for g in range(4)]
        fields = [f for own, high in low for f in ((own, 6), (high, 2))]
        for g in range(4, 8):
            fields += [(scales[g] & 15, 4), (minima[g] & 15, 4)]
        return bits_to_bytes(fields)

    def k45(self, i, fifth):
        raw_d, d = half(SCALES[i % len(SCALES)])
        raw_m, m = half(SCALES[(i * 5 + 3) % len(SCALES)])
        # Every scale and every minimum over eight blocks.
        scales = [(i * 8 + g) % 64 for g in range(8)]
        minima = [(i * 8 + g * 9 + 5) % 64 for g in range(8)]
        groups = [self.draw(32, 5 if fifth else 4) for _ in range(8)]
        high = b""
        if fifth:
            high = bits_to_bytes([(groups[g][e] >> 4, 1) for e in range(32) for g in range(8)])
        low = b""
        for a, b in zip(groups[0::2], groups[1::2]):
            low += bits_to_bytes([(v & 15, 4) for pair in zip(a, b) for v in pair])
        numbers = [d * s * q - m * lower for s, lower, group in zip(scales, minima, groups)
                   for q in group]
        return raw_d + raw_m + self.six_bit_scales(scales, minima) + high + low, numbers

    def Q4_K(self, i):
        return self.k45(i, False)

    def Q5_K(self, i):
        return self.k45(i, True)

    @staticmethod
    def quarters(values):
        """Two-bit fields of 256 values: a half's bytes hold the values of its four quarters."""
        return b"".join(bits_to_bytes([(values[h + e + 32 * t], 2) for e in range(32)
                                       for t in range(4)]) for h in (0, 128))

    def Q2_K(self, i):
        raw_d, d = half(SCALES[i % len(SCALES)])
        raw_m, m = half(SCALES[(i * 5 + 3) % len(SCALES)])
        own = [(i * 16 + g) % 256 for g in range(16)]
        q = self.draw(256, 2)
        numbers = [d * (own[e // 16] & 15) * q[e] - m * (own[e // 16] >> 4) for e in range(256)]
        return bytes(own) + self.quarters(q) + raw_d + raw_m, numbers

    def Q3_K(self, i):
        raw_d, d = half(SCALES[i % len(SCALES)])
        scales = [(i * 16 + g * 7) % 64 for g in range(16)]
        q = self.draw(256, 3)
        third = bits_to_bytes([(q[e + 32 * t] >> 2, 1) for e in range(32) for t in range(8)])
        low = bits_to_bytes([(s & 15, 4) for pair in zip(scales[:8], scales[8:]) for s in pair])
        high = bits_to_bytes([(scales[g + 4 * t] >> 4, 2) for g in range(4) for t in range(4)])
        numbers = [d * (scales[e // 16] - 32) * (q[e] - 4) for e in range(256)]
        return third + self.quarters([v & 3 for v in q]) + low + high + raw_d, numbers

    def Q6_K(self, i):
        raw_d, d = half(SCALES[i % len(SCALES)])
        scales = [(i * 16 + g) % 256 - 128 for g in range(16)]  # Every one over sixteen blocks.
        q = self.draw(256, 6)
        low = b"".join(bits_to_bytes([(q[h + e + t] & 15, 4) for e in range(64) for t in (0, 64)])
                       for h in (0, 128))
        numbers = [d * scales[e // 16] * (q[e] - 32) for e in range(256)]
        return (low + self.quarters([v >> 4 for v in q]) + struct.pack("<16b", *scales) + raw_d,
                numbers)


def encode_q8_0(x):
    d = f32(max(map(abs, x)) / 127)
    r = f32(1 / d) if d else 0.0
    scaled = [f32(v * r) for v in x]
    q = [int(abs(s) + 0.5) * (1 if s >= 0 else -1) for s in scaled]  # Exact in f64.
    return half(d)[0] + struct.pack("<32b", *q)


def encode_q4_0(x):
    d = f32(max(x, key=abs) / -8)
    r = f32(1 / d) if d else 0.0
    return half(d)[0] + nibbles([min(15, int(f32(f32(v * r) + 8.5))) for v in x])


def inputs(rng):
    """Blocks of 32: random ones of many sizes, ties, signs, zeros."""
    blocks = [[f32(rng.gauss(0, 2.0 ** rng.randrange(-14, 8))) for _ in range(32)]
              for _ in range(40)]
    blocks.append([0.0] * 32)
    blocks.append([(i - 16) / 2 for i in range(32)])  # Q4_0: d = 1, and every tie.
    blocks.append([127.0] + [i - 15.5 for i in range(31)])  # Q8_0: d = 1, and ties.
    blocks.append([-127.0] + [15.5 - i for i in range(31)])
    blocks.append([8.0, -8.0] * 16)  # The first of the largest decides the sign.
    blocks.append([-8.0, 8.0] * 16)
    return blocks


def files():
    rng = random.Random(20261130)
    made = {}
    for name, count in (("Q8_0", 16), ("Q4_0", 16), ("Q4_1", 16), ("Q5_0", 16), ("Q5_1", 16),
                        ("Q2_K", 16), ("Q3_K", 8), ("Q4_K", 8), ("Q5_K", 8), ("Q6_K", 16)):
        draw = Blocks(rng)
        blocks = [getattr(draw, name)(i) for i in range(count)]
        numbers = [f32(v) for _, values in blocks for v in values]
        made[name] = b"".join(raw for raw, _ in blocks) + struct.pack(f"<{len(numbers)}f", *numbers)
    given = inputs(rng)
    raw = b"".join(struct.pack("<32f", *x) for x in given)
    made["encode_Q8_0"] = raw + b"".join(map(encode_q8_0, given))
    made["encode_Q4_0"] = raw + b"".join(map(encode_q4_0, given))
    return made


def main():
    parser = argparse.ArgumentParser(description="blocks of GGUF's quantised types as test data")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "data")
    options = parser.parse_args()
    wrong = 0
    for name, content in files().items():
        path = options.folder / f"{name}.bin"
        if not options.check:
            path.write_bytes(content)
        elif path.read_bytes() != content:
            print(f"{path}: not what make_fixture.py makes")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
