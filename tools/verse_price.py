#!/usr/bin/env python3
"""What the rules of verse cost: mean log-probability lost a character against free sampling.

usage: verse_price.py KVASIR [--poems N] [--seed S] [--plot OUT.svg]

Draws N poems (1600) of each form with the form alone, with tones, with rhyme, with both, at
temperature 1, and as many free texts up to their line break, all from the model KVASIR uses.
Log-probabilities are the model's own, before any mask; punctuation and forced tokens count. The
best of 8 is taken of each 8 neighbours. Prints a Markdown table in nats a character with standard
errors.
"""

import argparse
import json
import math
import statistics
import subprocess
import tempfile

FORMS = ("wujue", "qijue", "wulv", "qilv")
SETTINGS = (("form", ()), ("tones", ("--tones",)), ("rhyme", ("--rhyme",)),
            ("tones, rhyme", ("--tones", "--rhyme")))
BEST_OF = 8
COLOURS = {"form": "#7f8c8d", "tones": "#1f6fb2", "rhyme": "#27905a", "tones, rhyme": "#c0392b"}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 340, 56, 48, 44


def run(program, *arguments):
    """The mean log-probability a token of each text, and its number of tokens."""
    with tempfile.TemporaryFile() as out:
        subprocess.run([program, *map(str, arguments), "--temperature", "1", "--json"], stdout=out,
                       check=True)
        out.seek(0)
        choices = json.load(out)["choices"]
    return [(sum(c["logprobs"]), len(c["logprobs"])) for c in choices if c["logprobs"]]


def mean(texts):
    """Nats a token over all texts, and the standard error of that ratio."""
    tokens = sum(count for _, count in texts)
    ratio = sum(total for total, _ in texts) / tokens
    squares = statistics.fmean((total - ratio * count) ** 2 for total, count in texts)
    return ratio, math.sqrt(squares * len(texts)) / tokens


def best(texts):
    return [max(texts[i:i + BEST_OF]) for i in range(0, len(texts), BEST_OF)]


def measure(program, poems, seed):
    """free: (mean, error); price: (form, setting, 1 or 8) → (lost, error)."""
    free = mean(run(program, "generate", "-p", "", "--max-tokens", 120, "--stop", "\n", "--count",
                    poems, "--seed", seed))
    price = {}
    for form in FORMS:
        for name, flags in SETTINGS:
            texts = run(program, "verse", "--form", form, *flags, "--count", poems, "--seed", seed)
            for number, kept in ((1, texts), (BEST_OF, best(texts))):
                value, error = mean(kept)
                price[form, name, number] = (free[0] - value, math.hypot(error, free[1]))
    return free, price


def table(free, price):
    lines = [f"Free sampling: {free[0]:.3f} ± {free[1]:.3f} nats a character.", "",
             "| form | best of | " + " | ".join(name for name, _ in SETTINGS) + " |",
             "|---|---|" + "---|" * len(SETTINGS)]
    for form in FORMS:
        for number in (1, BEST_OF):
            cells = ("{:+.3f} ± {:.3f}".format(*price[form, name, number])
                     for name, _ in SETTINGS)
            lines.append(f"| {form} | {number} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(price, path):
    """Bars: for each form and setting the price alone (wide) and of the best of 8 (narrow)."""
    low = min(0.0, min(value for value, _ in price.values()))
    high = max(value for value, _ in price.values())

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="18" font-size="14" font-weight="bold">What the rules cost: nats '
           'lost a character against free sampling</text>']
    for i, (name, _) in enumerate(SETTINGS):
        out.append(f'<rect x="{LEFT + 130 * i}" y="27" width="10" height="10" '
                   f'fill="{COLOURS[name]}"/>')
        out.append(f'<text x="{LEFT + 130 * i + 15}" y="36">{name}</text>')
    step = 0.1 if high - low < 1 else 0.2
    for tick in range(math.ceil(low / step), math.floor(high / step) + 1):
        value = tick * step
        out.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - 16}" '
                   f'stroke="{"#888888" if tick == 0 else "#dddddd"}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">'
                   f'{value:.1f}</text>')
    group = (WIDTH - LEFT - 16) / len(FORMS)
    for f, form in enumerate(FORMS):
        for s, (name, _) in enumerate(SETTINGS):
            for number, inset, width, opacity in ((1, 0, 26, 0.45), (BEST_OF, 7, 12, 1)):
                value = price[form, name, number][0]
                top, bottom = sorted((y(value), y(0)))
                out.append(f'<rect x="{LEFT + group * f + 12 + 30 * s + inset:.1f}" y="{top:.1f}" '
                           f'width="{width}" height="{max(bottom - top, 0.5):.1f}" '
                           f'fill="{COLOURS[name]}" fill-opacity="{opacity}"/>')
        out.append(f'<text x="{LEFT + group * (f + 0.5):.1f}" y="{HEIGHT - 24}" '
                   f'text-anchor="middle">{form}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle" '
               f'fill="#555555">pale: one poem; dark: the best of {BEST_OF}</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description="the price of verse's rules")
    parser.add_argument("program")
    parser.add_argument("--poems", type=int, default=1600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot")
    arguments = parser.parse_args()
    free, price = measure(arguments.program, arguments.poems, arguments.seed)
    print(table(free, price))
    if arguments.plot:
        plot(price, arguments.plot)


if __name__ == "__main__":
    main()
