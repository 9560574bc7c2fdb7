"""An independent judge of regulated verse: form, tones, rhyme.

Written from the rules in docs/verse.md as sentences about tones. It shares nothing with the program
but the table of characters, of which it reads the text with a reader of its own.

usage: check_verse.py POEMS    one poem a line; says how many keep which rules
"""

import collections
import itertools
import pathlib
import re
import sys

TABLE = (pathlib.Path(__file__).resolve().parents[2]
         / "src/constraints/tone_data_generated.h")
FORMS = {"wujue": (4, 5), "qijue": (4, 7), "wulv": (8, 5), "qilv": (8, 7)}
HAN = re.compile("[\u3400-\u9fff\U00020000-\U0002ffff]+")


class Table:
    """Which tones a character has, which rhyme groups it is in."""

    def __init__(self, path=TABLE):
        text = path.read_text("utf-8")
        self.tones = collections.defaultdict(set)
        for name, body in re.findall(r"string_view k(\w+) =\n([^;]*);", text):
            for character in "".join(re.findall('"([^"]*)"', body)):
                self.tones[character] |= set({"Level": "L", "Oblique": "O", "Both": "LO"}[name])
        self.groups = collections.defaultdict(set)
        for body in re.findall(r"\{(\"[^}]*)\}", text[text.index("kGroups"):]):
            name, *members = re.findall('"([^"]*)"', body)
            for character in "".join(members):
                self.groups[character].add(name)

    def can(self, character, tone):
        return tone in self.tones.get(character, ())


def lines_of(poem, form):
    """The poem's lines if it has that form, else None."""
    count, chars = FORMS[form]
    lines, rest = [], poem
    for mark in itertools.islice(itertools.cycle("，。"), count):
        line, found, rest = rest.partition(mark)
        if not found or len(line) != chars or not HAN.fullmatch(line):
            return None
        lines.append(line)
    return None if rest else lines


def form_of(poem):
    return next((form for form in FORMS if lines_of(poem, form)), None)


def line_faults(tones):
    """What is wrong with one line of tones, if it stood alone; "great" if it needs a rescue."""
    *front, first, second, third, fourth, fifth = tones
    if front and front[1] == second:
        return "second and fourth agree"
    if second == fourth:
        if (first, second, third, fourth, fifth) == ("L", "L", "O", "L", "O"):
            return None  # Third and fourth have changed places.
        return "great" if (second, fifth) == ("O", "O") else "the even places agree"
    if (third, fourth, fifth) == ("L", "L", "L"):
        return "three level tones at the end"
    if fifth == "L" and second == "L" and first == third == "O":
        return "a lone level tone"
    if fifth == "O" and second == "L" and third == "O" and first == "O":
        return "a lone level tone before three oblique ones"
    return None


def keeps_tones(lines, table, first_end):
    """Whether the lines can be read by the rules, line 1 ending in the tone first_end."""
    possible = None  # Of the line before: (second tone, needs a rescue).
    for number, line in enumerate(lines, 1):
        wanted = first_end if number == 1 else "O" if number % 2 else "L"
        now = set()
        for tones in itertools.product(*(sorted(table.tones.get(c, ())) for c in line)):
            if tones[-1] != wanted:
                continue
            fault = line_faults(tones)
            if fault not in (None, "great"):
                continue
            rescues = tones[-4] == "L" and tones[-2] == "O" and tones[-3] == "L"
            for second, needs in possible if number > 1 else [(None, False)]:
                if needs and not rescues:
                    continue
                opposed = second is not None and second != tones[1]
                if second is None or opposed == (number % 2 == 0):
                    now.add((tones[1], fault == "great"))
        possible = now
    return any(not needs for _, needs in possible)


def rhyme_group(lines, table, groups=None):
    """The groups that all even lines rhyme in, if no rhyme word comes twice."""
    words = [lines[0][-1]] + [line[-1] for line in lines[1::2]]
    if len(set(words)) < len(words):
        return set()
    common = set.intersection(*(table.groups.get(word, set()) for word in words[1:]))
    return common if groups is None else common & groups


def judge(poem, form, table, tones=True, rhyme=True, group=None):
    """"" if the poem keeps what is asked, else what it breaks first."""
    lines = lines_of(poem, form)
    if lines is None:
        return "form"
    common = rhyme_group(lines, table, None if group is None else {group}) if rhyme else set()
    if rhyme and not common:
        return "rhyme"
    if tones:
        ends = ["O"]
        if not rhyme or common & table.groups.get(lines[0][-1], set()):
            ends.append("L")
        if not any(keeps_tones(lines, table, end) for end in ends):
            return "tones"
    return ""


def main():
    table = Table()
    counts = collections.defaultdict(collections.Counter)
    for poem in pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines():
        form = form_of(poem)
        count = counts[form or "no form"]
        count["poems"] += 1
        if form:
            count["rhyme"] += not judge(poem, form, table, tones=False)
            count["tones"] += not judge(poem, form, table, rhyme=False)
            count["both"] += not judge(poem, form, table)
    for form, count in sorted(counts.items()):
        shares = ", ".join(f"{what} {count[what]} ({count[what] / count['poems']:.1%})"
                           for what in ("rhyme", "tones", "both"))
        print(f"{form}: {count['poems']} poems; {shares}")


if __name__ == "__main__":
    main()
