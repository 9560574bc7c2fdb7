#!/usr/bin/env python3
"""corpus tang and verse: what they select and what they refuse."""

import json
import os

import program


class CorpusTest(program.CliTest):
    POEMS = [["白日依山尽，黄河入海流。", "欲穷千里目，更上一层楼。"],  # Kept.
             ["白日依山尽，黄河入海流。", "欲穷千里目，更上一层楼。"],  # A repeat.
             ["春風不相識，何事入羅幃。"],  # Too few lines.
             ["春風花月江山水，春風花月江山水。", "春風花月江山水，春風花月江山水。"],  # Kept, simplified.
             ["白日依〇尽，黄河入海流。", "欲穷千里目，更上一层楼。"]]  # 〇 is not allowed.

    def package(self, content):
        folder = self.home / "package" / "dist" / "quantangshi"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "poet.tang.0.json").write_bytes(content)
        return str(self.home / "package")

    def test_selects_and_writes(self):
        poems = [{"title": "t", "author": "a", "paragraphs": lines} for lines in self.POEMS]
        package = self.package(json.dumps(poems).encode())
        out = self.kvasir("corpus", "tang", package, "-o", self.path("out"), "--json").json
        self.assertEqual((out["poems"], out["repeats"], out["held_out"]), (2, 1, 0))
        lines = (self.home / "out" / "tang.txt").read_text().splitlines()
        self.assertEqual(lines, ["".join(self.POEMS[0]), "春风花月江山水，春风花月江山水。" * 2])
        self.assertEqual(sorted(os.listdir(self.home / "out")),
                         ["tang.train.txt", "tang.txt", "tang.val.txt"])

    def test_verse_adds_song_and_leaves_near_copies_out(self):
        def poem(heads):
            return {"paragraphs": [heads[0] * 5 + "，" + heads[1] * 5 + "。",
                                   heads[2] * 5 + "，" + heads[3] * 5 + "。"]}
        tang = [poem(c + "風" + c + "月") for c in "甲乙丙丁戊己庚"] + [poem("春夏秋冬")]
        package = self.package(json.dumps(tang).encode())
        song = [poem("甲乙丙丁"), poem("甲乙丙冬"), poem("甲乙丙虹"), {"paragraphs": []}]
        path = self.home / "package" / "dist" / "quantangshi" / "poet.song.0.json"
        path.write_text(json.dumps(song))
        asked = ("corpus", "verse", package, "-o", self.path("out"))
        out = self.kvasir(*asked, "--json").json
        counts = {"song_poems_read": 4, "song_irregular": 1, "song_strange": 1,
                  "song_near_copies": 1, "song_repeats": 0, "tang_near_copies": 0}
        self.assertEqual({name: out[name] for name in counts}, counts)
        poems = [out[part]["poems"] for part in ("tang", "song", "val")]
        self.assertEqual(poems, [7, 1, 1])
        self.assertEqual(sorted(os.listdir(self.home / "out")),
                         ["verse.song.txt", "verse.tang.txt", "verse.val.txt"])
        self.assertIn("1 near copies; 1 kept", self.kvasir(*asked).text)
        path.unlink()
        self.refused(1, "poet.song.N.json", *asked)

    def test_refuses(self):
        out = ("-o", self.path("out"))
        self.refused(1, "chinese-poetry", "corpus", "tang", self.path("none"), *out)
        self.refused(1, "chinese-poetry", "corpus", "tang", str(self.home), *out)
        self.refused(2, "song", "corpus", "song", str(self.home), *out)
        for content in (b"", b"[", b"{}", b'[{"paragraphs": 3}]', b'[{"paragraphs": ["\xff"]}]'):
            self.refused(1, "poet.tang.0.json", "corpus", "tang", self.package(content), *out)
        self.assertFalse((self.home / "out").exists())


if __name__ == "__main__":
    program.main()
