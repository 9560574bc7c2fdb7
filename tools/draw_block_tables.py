#!/usr/bin/env python3
"""Draws how sequences lie in the blocks of the cache, from a real run.

    build/release/kvasir generate … --trace --json > run.json
    tools/draw_block_tables.py run.json --step 3 --out picture.svg

Reads the "trace" of the JSON document: the block table of every sequence after every step. Each
sequence is a row of its blocks, in the order of positions, with filled and empty slots; a block
that several sequences hold has the same number and colour in each row. Below lies the pool: one
box a block, with the number of tables that name it. --step takes several steps, drawn below each
other; without it the last one is drawn.
"""

import argparse
import html
import json
import pathlib
import sys

SLOT, ROW, GAP, LEFT, TOP = 8, 22, 8, 164, 56  # Pixels.
COLOURS = ("#8ecae6", "#ffb703", "#a7c957", "#f4a6c0", "#cdb4db", "#f28482", "#84dcc6", "#d4a373")
EMPTY, INK = "#f4f4f4", "#222222"


class Picture:
    def __init__(self):
        self.parts = []
        self.width = self.height = 0

    def grow(self, right, bottom):
        self.width, self.height = max(self.width, right), max(self.height, bottom)

    def text(self, x, y, text, attributes=""):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" {attributes}>{html.escape(text)}</text>')
        self.grow(x + 7 * len(text) * ('anchor="middle"' not in attributes), y + 6)

    def box(self, x, y, width, height, fill, attributes=f'stroke="{INK}"'):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
                          f'fill="{fill}" {attributes}/>')
        self.grow(x + width, y + height)

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width + 16:g} '
                f'{self.height + 12:g}" font-family="sans-serif" font-size="12" fill="{INK}">\n'
                f'<rect width="100%" height="100%" fill="#ffffff"/>\n')
        return head + "\n".join(self.parts) + "\n</svg>\n"


def name_of(table, several_prompts):
    prompt = f"prompt {table['prompt_index'] + 1}, " if several_prompts else ""
    return prompt + ("shared prompt" if table["stem"] else f"choice {table['index'] + 1}")


def draw_table(picture, y, name, table, block_tokens, counts):
    picture.text(12, y + 15, name)
    x = LEFT
    for entry, block in enumerate(table["blocks"]):
        filled = min(max(table["length"] - entry * block_tokens, 0), block_tokens)
        colour = COLOURS[block % len(COLOURS)]
        picture.box(x, y, block_tokens * SLOT, ROW, EMPTY, 'stroke="none"')
        picture.box(x, y, filled * SLOT, ROW, colour, 'stroke="none"')
        for slot in range(1, block_tokens):
            picture.parts.append(f'<path d="M{x + slot * SLOT:g} {y:g}v{ROW}" stroke="#ffffff" '
                                 'stroke-width="0.7"/>')
        shared = counts[block] > 1
        picture.box(x, y, block_tokens * SLOT, ROW, "none",
                    f'stroke="{INK}" stroke-width="{2 if shared else 1}"')
        picture.text(x + block_tokens * SLOT / 2, y + 15, f"block {block}",
                     'text-anchor="middle"')
        x += block_tokens * SLOT + GAP
    return y + ROW + GAP


def draw_step(picture, y, step, block_tokens, several_prompts):
    tables = step["tables"]
    counts = {}
    for table in tables:
        for block in table["blocks"]:
            counts[block] = counts.get(block, 0) + 1
    shared = sum(1 for count in counts.values() if count > 1)
    blocks = "block" if len(counts) == 1 else "blocks"
    picture.text(12, y, f"After step {step['step']}: {len(counts)} {blocks} held"
                 + (f", {shared} of them shared" if shared else "")
                 + f"; {step['held_bytes']:,} bytes", 'font-weight="bold"')
    y += 12
    for table in tables:
        y = draw_table(picture, y, f"{name_of(table, several_prompts)}: {table['length']}", table,
                       block_tokens, counts)
    picture.text(12, y + 15, "pool")
    for place, block in enumerate(sorted(counts)):
        x = LEFT + place * 52
        picture.box(x, y, 44, ROW, COLOURS[block % len(COLOURS)])
        picture.text(x + 22, y + 15, f"{block} (×{counts[block]})", 'text-anchor="middle"')
    return y + ROW + 36


def steps_of(document, wanted):
    trace = document.get("trace")
    if not trace:
        sys.exit("draw_block_tables: the document has no trace: run generate with --trace --json")
    if not wanted:
        return trace[-1:]
    steps = {step["step"]: step for step in trace}
    for number in wanted:
        if number not in steps:
            sys.exit(f"draw_block_tables: step {number} is not in the trace: 1 to {len(trace)}")
    return [steps[number] for number in wanted]


def draw(document, wanted, title):
    picture = Picture()
    block_tokens = document["settings"]["block_tokens"]
    picture.text(12, 22, title or "Block tables of a run", 'font-size="15" font-weight="bold"')
    several = any(table["prompt_index"] for step in document.get("trace", ())
                  for table in step["tables"])
    y = TOP
    for step in steps_of(document, wanted):
        y = draw_step(picture, y, step, block_tokens, several)
    return picture.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="JSON document of generate --trace --json")
    parser.add_argument("--step", type=int, nargs="+", default=[], help="default: the last")
    parser.add_argument("--title", default="")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    flags = parser.parse_args()
    try:
        document = json.loads(flags.run.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"draw_block_tables: {flags.run}: {error}")
    flags.out.write_text(draw(document, flags.step, flags.title), encoding="utf-8")


if __name__ == "__main__":
    main()
