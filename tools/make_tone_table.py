#!/usr/bin/env python3
"""Makes src/constraints/tone_data_generated.h: tone and rhyme group of each Chinese character.

usage: make_tone_table.py PACKAGE [--readings FILE] [-o HEADER]

PACKAGE is the unpacked npm package chinese-poetry 2.0.1 (npm pack chinese-poetry@2.0.1): the Tang
poems of dist/quantangshi, and of dist/strains/json the mark of every character of every poem: 平
level, 仄 oblique, ○ either. FILE is Unihan_Readings.txt.bz2 of Debian's unicode-data, for the Tang
readings (kTang). Texts are simplified by OpenCC (libopencc), as `kvasir corpus tang` does it, and
the poems which that command holds out are not learned from.

Tone: level or oblique if at least 95 % of a character's marks agree, else both.
Rhyme group: the finals of the level readings are merged, the closest pair first, while poets rhyme
them often enough; then every character moves to the group it is most often rhymed with, and stays
in a second one if it is often rhymed there too. How well that fits is printed on stderr.
"""

import argparse
import bz2
import collections
import ctypes
import ctypes.util
import itertools
import json
import pathlib
import re
import sys
import unicodedata

HAN = "[\u3400-\u9fff\U00020000-\U0002ffff]"
IS_HAN = re.compile(HAN)
REGULAR = re.compile("|".join(f"(?:(?:{HAN}{{{chars}}}，{HAN}{{{chars}}}。){{{couplets}}})"
                              for chars in (5, 7) for couplets in (2, 4)))
PERIOD, REMAINDER = 50, 7  # Poem i is held out when i % PERIOD == REMAINDER (tang_corpus.h).
AGREE = 0.95               # Share of a character's marks that makes its tone certain.
MERGE = 0.25               # Two groups are one if that share of the rarer one's pairs is mixed.
HOME_PAIRS = 3             # Rhyming pairs that outweigh a dictionary's reading.
SECOND_SHARE, SECOND_PAIRS = 0.15, 5  # Of a character's pairs, for a second group.
# The headwords by which rhyme books call the thirty level groups; a group that has one is named so.
HEADWORDS = "东冬江支微鱼虞齐佳灰真文元寒删先萧肴豪歌麻阳庚青蒸尤侵覃盐咸"
GRAVE, CARON, DOT_BELOW = "\u0300", "\u030c", "\u0323"
VOWELS = "aeiouɑæɛə"
DEFAULT_READINGS = "/usr/share/unicode/Unihan_Readings.txt.bz2"
DEFAULT_HEADER = (pathlib.Path(__file__).resolve().parent.parent
                  / "src/constraints/tone_data_generated.h")
Poem = collections.namedtuple("Poem", "text marks")


def simplify(text):
    """The text in simplified characters, by OpenCC's t2s."""
    library = ctypes.CDLL(ctypes.util.find_library("opencc") or "libopencc.so.1.1")
    library.opencc_open.restype = ctypes.c_void_p
    library.opencc_open.argtypes = [ctypes.c_char_p]
    library.opencc_convert_utf8.restype = ctypes.c_void_p
    library.opencc_convert_utf8.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    converter = library.opencc_open(b"t2s.json")
    data = text.encode()
    converted = library.opencc_convert_utf8(converter, data, len(data))
    if not converted:
        sys.exit("make_tone_table: OpenCC cannot convert")
    return ctypes.string_at(converted).decode()


def read_poems(package):
    """All Tang poems in the package's order, simplified, with their marks (or "")."""
    texts, marks = [], []
    files = sorted((package / "dist/quantangshi").glob("poet.tang.*.json"),
                   key=lambda path: int(path.name.split(".")[2]))
    if not files:
        sys.exit(f"make_tone_table: {package} holds no dist/quantangshi/poet.tang.N.json")
    for path in files:
        marked = {poem["id"]: "".join(poem["strains"]) for poem in
                  json.loads((package / "dist/strains/json" / path.name).read_text("utf-8"))}
        for poem in json.loads(path.read_text("utf-8")):
            texts.append("".join(poem["paragraphs"]).replace("\n", ""))
            marks.append(marked.get(poem["id"], "").replace("\n", ""))
    return [Poem(*pair) for pair in zip(simplify("\n".join(texts)).split("\n"), marks, strict=True)]


def split(poems):
    """(train, held out): the regular poems as `kvasir corpus tang` splits them."""
    kept = list(dict.fromkeys(poem.text for poem in poems if REGULAR.fullmatch(poem.text)))
    held = kept[REMAINDER::PERIOD]
    return [text for i, text in enumerate(kept) if i % PERIOD != REMAINDER], held


def find_tones(poems, held):
    """Character → "level", "oblique" or "both"."""
    unseen = set(held)
    counts = collections.defaultdict(collections.Counter)
    for poem in poems:
        if poem.text in unseen or len(poem.text) != len(poem.marks):
            continue
        for character, mark in zip(poem.text, poem.marks):
            if mark in "平仄○" and IS_HAN.fullmatch(character):
                counts[character][mark] += 1
    tones = {}
    for character, marks in sorted(counts.items()):
        needed = AGREE * sum(marks.values())
        tones[character] = ("level" if marks["平"] >= needed else
                            "oblique" if marks["仄"] >= needed else "both")
    return tones


def rhyme_words(text, tones):
    """The last characters of the even lines if all can be level, else nothing."""
    words = [line[-1] for line in re.split("[，。]", text)[1::2]]
    return words if all(tones.get(word, "oblique") != "oblique" for word in words) else []


def count_pairs(texts, tones):
    """(a, b) → how often a and b rhyme, both ways."""
    pairs = collections.Counter()
    for text in texts:
        pairs.update(itertools.permutations(dict.fromkeys(rhyme_words(text, tones)), 2))
    return pairs


def final_of(reading):
    """The part of a Tang reading that rhymes, or None if it is not level."""
    letters = unicodedata.normalize("NFD", reading.strip("*"))
    if GRAVE in letters or CARON in letters or letters[-1] in "ptk":
        return None
    found = re.search(f"[{VOWELS}].*$", unicodedata.normalize("NFC", letters))
    return found and found[0]


def read_finals(readings, tones):
    """Simplified character → the finals of its level Tang readings, the first one first."""
    rows = []
    with bz2.open(readings, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 3 and fields[1] == "kTang":
                rows.append((chr(int(fields[0][2:], 16)), fields[2].split()))
    characters = simplify("\n".join(row[0] for row in rows)).split("\n")
    finals = collections.defaultdict(list)  # Of a character that stands for several, all.
    for character, (_, spoken) in zip(characters, rows, strict=True):
        for final in map(final_of, spoken):
            if final and final not in finals[character]:
                finals[character].append(final)
    return {c: found for c, found in finals.items() if found and tones.get(c) != "oblique"}


def weights(pairs, group_of):
    """Pairs between groups, and all pairs of each group."""
    between, total = collections.Counter(), collections.Counter()
    for (a, b), count in pairs.items():
        if a in group_of and b in group_of:
            between[group_of[a], group_of[b]] += count
            total[group_of[a]] += count
    return between, total


def merge_finals(pairs, finals):
    """Final → group: merges the two groups that rhyme most with each other, again and again."""
    group = {final: final for found in finals.values() for final in found}
    certain = {c: found[0] for c, found in finals.items() if len(found) == 1}
    while True:
        between, total = weights(pairs, {c: group[final] for c, final in certain.items()})
        share, a, b = max((between[a, b] / min(total[a], total[b]), a, b)
                          for a, b in itertools.combinations(sorted(total), 2))
        if share < MERGE:
            return {final: home for final, home in group.items() if home in total}
        for final in group:
            if group[final] == b:
                group[final] = a


def group_characters(pairs, finals, group_of_final, tones):
    """Character → its one or two groups, the usual one first."""
    home = {c: group_of_final[found[0]] for c, found in finals.items()
            if len(found) == 1 and found[0] in group_of_final}
    shares = collections.defaultdict(collections.Counter)
    for _ in range(20):  # Rounds until nobody moves; eight were enough.
        shares.clear()
        for (a, b), count in sorted(pairs.items()):
            if b in home:
                shares[a][home[b]] += count
        moved = {c: max(sorted(share), key=share.get) for c, share in sorted(shares.items())
                 if sum(share.values()) >= HOME_PAIRS}
        if moved == home:
            break
        home = moved
    groups = {}
    for c in sorted(tones):
        if tones[c] == "oblique":
            continue
        if c in home:
            share, needed = shares[c], SECOND_SHARE * sum(shares[c].values())
            others = sorted((g for g in share if g != home[c] and share[g] >= SECOND_PAIRS
                             and share[g] >= needed), key=lambda g: -share[g])
            groups[c] = [home[c], *others[:1]]
        elif known := [f for f in finals.get(c, []) if f in group_of_final]:  # Seldom rhymed.
            groups[c] = list(dict.fromkeys(group_of_final[final] for final in known))[:2]
    return groups


def name_groups(pairs, groups):
    """Name → members, most rhymed first; groups in the order of the rhyme books."""
    used = collections.Counter()
    for (a, _), count in pairs.items():
        used[a] += count
    members = collections.defaultdict(list)
    for c in sorted(groups, key=lambda c: (-used[c], c)):
        for group in groups[c]:
            members[group].append(c)
    named = {}
    for group, characters in members.items():
        heads = [c for c in characters if c in HEADWORDS and groups[c][0] == group]
        named[heads[0] if heads else characters[0]] = characters
    order = HEADWORDS.find
    return dict(sorted(named.items(), key=lambda item: (order(item[0]) < 0, order(item[0]))))


def string_lines(characters):
    """A C++ string literal of these characters, cut into lines."""
    return "\n".join(f'    "{characters[i:i + 90]}"' for i in range(0, len(characters), 90))


def write_header(path, tones, named):
    parts = ["// Tones and rhyme groups of Chinese characters, made by tools/make_tone_table.py,\n"
             "// which says from what and how: change it there.\n// clang-format off\n"
             "#ifndef KVASIR_CONSTRAINTS_TONE_DATA_GENERATED_H_\n"
             "#define KVASIR_CONSTRAINTS_TONE_DATA_GENERATED_H_\n\n"
             '#include "constraints/tone_table.h"\n\n'
             "namespace kvasir::constraints::tone_data {\n"]
    for tone in ("level", "oblique", "both"):
        characters = "".join(c for c in tones if tones[c] == tone)
        parts.append(f"// {len(characters)} characters.\ninline constexpr std::string_view "
                     f"k{tone.capitalize()} =\n{string_lines(characters)};\n")
    parts.append("// Most rhymed first.\ninline constexpr RhymeGroupText kGroups[] = {")
    for name, characters in named.items():
        parts.append(f'    {{"{name}",\n{string_lines("".join(characters))}}},')
    parts.append("};\n\n}  // namespace kvasir::constraints::tone_data\n\n"
                 "#endif  // KVASIR_CONSTRAINTS_TONE_DATA_GENERATED_H_\n")
    path.write_text("\n".join(parts), "utf-8")


def report(name, texts, tones, finals, groups):
    """How many real rhyming pairs, and poems with level rhymes, the table accepts."""
    counts = collections.Counter()
    for text in texts:
        words = rhyme_words(text, tones)
        counts["poems"] += bool(words)
        counts["one group"] += bool(words) and bool(set.intersection(
            *(set(groups.get(word, [])) for word in words)))
        for a, b in itertools.combinations(words, 2):
            counts["pairs"] += 1
            counts["accepted"] += bool(set(groups.get(a, [])) & set(groups.get(b, [])))
            if a in finals and b in finals:
                counts["read"] += 1
                counts["same final"] += bool(set(finals[a]) & set(finals[b]))
    print(f"{name}: {len(texts)} poems, {counts['poems']} with level rhymes; "
          f"{counts['one group'] / counts['poems']:.2%} of these in one group; "
          f"{counts['accepted'] / counts['pairs']:.2%} of {counts['pairs']} pairs; by equal "
          f"finals {counts['same final'] / counts['read']:.2%} of {counts['read']}",
          file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="makes the table of tones and rhyme groups")
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--readings", default=DEFAULT_READINGS)
    parser.add_argument("-o", dest="header", type=pathlib.Path, default=DEFAULT_HEADER)
    arguments = parser.parse_args()
    poems = read_poems(arguments.package)
    train, held = split(poems)
    tones = find_tones(poems, held)
    pairs = count_pairs(train, tones)
    finals = read_finals(arguments.readings, tones)
    groups = group_characters(pairs, finals, merge_finals(pairs, finals), tones)
    named = name_groups(pairs, groups)
    write_header(arguments.header, tones, named)
    kinds = collections.Counter(tones.values())
    print(f"{len(tones)} characters: {kinds['level']} level, {kinds['oblique']} oblique, "
          f"{kinds['both']} both; {len(groups)} in {len(named)} groups", file=sys.stderr)
    report("train", train, tones, finals, groups)
    report("held out", held, tones, finals, groups)


if __name__ == "__main__":
    main()
