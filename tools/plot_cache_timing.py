#!/usr/bin/env python3
"""Draws the README's picture: time to generate n tokens with the KV cache and without it.

    build/release/kvasir bench cache --json … > cache.json
    tools/plot_cache_timing.py cache.json docs/cache-timing.svg

Reads the JSON document of `kvasir bench cache` and writes one SVG with a line for each.
"""
import json
import sys

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 44, 52


def nice_step(largest):
    """A round distance between grid lines, about five of them up to `largest`."""
    step = 10 ** len(str(int(largest)))
    for divisor in (1, 2, 5, 10, 20, 50, 100, 200):
        if largest / (step / divisor) >= 4:
            return step / divisor
    return largest


def main(source, target):
    with open(source, encoding="utf-8") as file:
        document = json.load(file)
    rows = sorted(document["rows"], key=lambda row: row["tokens"])
    most_tokens = rows[-1]["tokens"]
    most_ms = max(row["ms_off"] for row in rows)

    def x(tokens):
        return LEFT + (WIDTH - LEFT - RIGHT) * tokens / most_tokens

    def y(ms):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ms / (most_ms * 1.08)

    shape = document["shape"]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">Time to generate n characters: '
        'same bits, with and without the KV cache</text>',
        f'<text x="{LEFT}" y="36" fill="#555555">{shape["layers"]} layers × {shape["embedding"]}, '
        f'vocabulary {shape["vocab"]}, {document["threads"]} thread(s), '
        f'{document["target"]}</text>',
    ]
    step = nice_step(most_ms)
    value = 0.0
    while value <= most_ms * 1.08:
        out.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" '
                   f'text-anchor="end">{value:g}</text>')
        value += step
    for row in rows:
        out.append(f'<text x="{x(row["tokens"]):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{row["tokens"]}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" '
               'text-anchor="middle">characters generated</text>')
    out.append(f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" '
               f'transform="rotate(-90 16 {HEIGHT / 2})">milliseconds</text>')
    for key, colour, name in (("ms_off", "#c0392b", "without"), ("ms_on", "#1f6fb2", "with cache")):
        path = " ".join(f'{x(row["tokens"]):.1f},{y(row[key]):.1f}' for row in rows)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                   'stroke-width="2.5"/>')
        for row in rows:
            out.append(f'<circle cx="{x(row["tokens"]):.1f}" cy="{y(row[key]):.1f}" r="3.5" '
                       f'fill="{colour}"/>')
        last = rows[-1]
        out.append(f'<text x="{x(last["tokens"]) - 8:.1f}" y="{y(last[key]) - 10:.1f}" '
                   f'text-anchor="end" fill="{colour}">{name}: {last[key]:.1f} ms</text>')
    out.append("</svg>")
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: plot_cache_timing.py CACHE.json OUT.svg")
    main(*sys.argv[1:])
