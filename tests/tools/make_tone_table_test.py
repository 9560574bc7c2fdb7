#!/usr/bin/env python3
"""tools/make_tone_table.py: marks to tones, readings and rhymes to groups, on small texts."""

import bz2
import collections
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/verse")]

import check_verse  # pylint: disable=wrong-import-position
import make_tone_table as table  # pylint: disable=wrong-import-position


class MakeToneTableTest(unittest.TestCase):
    def test_finals_of_level_readings(self):
        for reading, final in (("dhung", "ung"), ("*qit", None), ("iɑng", "iɑng"), ("ngɑu", "ɑu"),
                               ("jrhà", None), ("siǒng", None), ("mei", "ei"), ("qop", None),
                               ("hm", None)):
            self.assertEqual(table.final_of(reading), final, reading)

    def test_a_tone_needs_95_percent_of_the_marks(self):
        def poem(level, oblique, either):
            count = level + oblique + either
            return table.Poem("花" * count, "平" * level + "仄" * oblique + "○" * either)

        for counts, tone in (((19, 1, 0), "level"), ((18, 2, 0), "both"), ((1, 19, 0), "oblique"),
                             ((18, 0, 2), "both"), ((1, 0, 0), "level")):
            self.assertEqual(table.find_tones([poem(*counts)], []), {"花": tone}, counts)
        # Held-out poems, and marks that do not fit their text, say nothing.
        self.assertEqual(table.find_tones([poem(1, 0, 0), table.Poem("花月", "仄")], ["花"]), {})

    def test_the_split_is_the_corpus_command_s(self):
        texts = [chr(0x4E00 + i) * 5 + "，花花花花花。月月月月月，花花花花花。" for i in range(120)]
        poems = [table.Poem(text, "") for text in [*texts[:60], "花。", texts[0], *texts[60:]]]
        train, held = table.split(poems)
        self.assertEqual(held, [texts[7], texts[57], texts[107]])
        self.assertEqual(len(train), 117)

    def test_finals_that_rhyme_are_merged_and_characters_moved(self):
        # a, b, c share finals x; d, e have y but rhyme with them; f has z; g no reading; h is read
        # z and rhymed with x; i is never rhymed.
        finals = {"a": ["x"], "b": ["x"], "c": ["x"], "d": ["y"], "e": ["y"], "f": ["z"],
                  "F": ["z"], "h": ["z"], "i": ["y"]}
        pairs = collections.Counter()
        for a, b, count in (("a", "b", 9), ("b", "c", 9), ("a", "d", 5), ("d", "e", 5),
                            ("f", "F", 20), ("g", "a", 4), ("h", "a", 9), ("h", "f", 6)):
            pairs[a, b] += count
            pairs[b, a] += count
        merged = table.merge_finals(pairs, finals)
        self.assertEqual(merged["x"], merged["y"])
        self.assertNotEqual(merged["x"], merged["z"])
        tones = dict.fromkeys("abcdefFghi", "level") | {"e": "oblique"}
        groups = table.group_characters(pairs, finals, merged, tones)
        for character in "abcdgi":
            self.assertEqual(groups[character], [merged["x"]], character)
        self.assertEqual(groups["h"], [merged["x"], merged["z"]])
        self.assertNotIn("e", groups)

    def test_the_whole_way(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            package = folder / "dist"
            for part in ("quantangshi", "strains/json"):
                (package / part).mkdir(parents=True)
            verse = ["白日依山盡，黃河入海流。", "欲窮千里目，更上一層樓。"]
            marks = ["仄仄平平仄，平平仄仄平。", "仄平平仄仄，仄仄仄平平。"]
            for part, key, lines in (("quantangshi", "paragraphs", verse),
                                     ("strains/json", "strains", marks)):
                (package / part / "poet.tang.0.json").write_text(
                    json.dumps([{"id": "1", key: lines}]), "utf-8")
            poems = table.read_poems(folder)
            self.assertEqual(poems[0].text, "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。")
            tones = table.find_tones(poems, [])
            self.assertEqual(tones["层"], "level")
            readings = folder / "readings.bz2"
            rows = ("# kTang", "U+6D41\tkTang\t*liou", "U+6A13\tkTang\tlou", "U+65E5\tkTang\tnjit")
            readings.write_bytes(bz2.compress("\n".join(rows).encode()))
            finals = table.read_finals(readings, tones)
            self.assertEqual(finals, {"流": ["iou"], "楼": ["ou"]})
            pairs = table.count_pairs([poems[0].text], tones)
            self.assertEqual(pairs, {("流", "楼"): 1, ("楼", "流"): 1})
            named = table.name_groups(pairs, {"流": ["ou"], "楼": ["ou"]})
            header = folder / "tones.h"
            table.write_header(header, tones, named)
            read = check_verse.Table(header)
            self.assertEqual(read.tones["日"], {"O"})
            self.assertEqual(read.groups["楼"], read.groups["流"])


if __name__ == "__main__":
    unittest.main()
