#!/usr/bin/env python3
"""The judge itself: poems everybody knows, and what breaks when one thing in them is changed."""

import unittest

import check_verse

GUAN_QUE = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
SHAN_XING = "远上寒山石径斜，白云生处有人家。停车坐爱枫林晚，霜叶红于二月花。"
CHUN_WANG = ("国破山河在，城春草木深。感时花溅泪，恨别鸟惊心。"
             "烽火连三月，家书抵万金。白头搔更短，浑欲不胜簪。")
DENG_GAO = ("风急天高猿啸哀，渚清沙白鸟飞回。无边落木萧萧下，不尽长江滚滚来。"
            "万里悲秋常作客，百年多病独登台。艰难苦恨繁霜鬓，潦倒新停浊酒杯。")


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.table = check_verse.Table()

    def verdict(self, poem, **asked):
        return check_verse.judge(poem, check_verse.form_of(poem) or "wujue", self.table, **asked)

    def test_the_table_is_read(self):
        self.assertGreater(len(self.table.tones), 7000)
        self.assertEqual(self.table.tones["春"], {"L"})
        self.assertEqual(self.table.tones["月"], {"O"})
        self.assertEqual(self.table.tones["看"], {"L", "O"})
        self.assertEqual(self.table.groups["流"], self.table.groups["楼"])
        self.assertEqual(len(set.union(*self.table.groups.values())), 30)

    def test_good_poems(self):
        for form, poem in zip(check_verse.FORMS, (GUAN_QUE, SHAN_XING, CHUN_WANG, DENG_GAO)):
            self.assertEqual(check_verse.form_of(poem), form)
            self.assertEqual(self.verdict(poem), "", poem)

    def test_form(self):
        for poem in ("", GUAN_QUE[:-1], GUAN_QUE + "。", GUAN_QUE.replace("，", "。"),
                     GUAN_QUE.replace("白", "a"), GUAN_QUE + "\n"):
            self.assertIsNone(check_verse.form_of(poem), poem)
            self.assertEqual(self.verdict(poem), "form")

    def test_rhyme(self):
        self.assertEqual(self.verdict(GUAN_QUE.replace("楼", "山")), "rhyme")
        self.assertEqual(self.verdict(GUAN_QUE.replace("楼", "流")), "rhyme")
        self.assertEqual(self.verdict(SHAN_XING.replace("斜", "花")), "rhyme")
        self.assertEqual(self.verdict(SHAN_XING.replace("斜", "山")), "tones")
        self.assertEqual(self.verdict(SHAN_XING.replace("斜", "山"), tones=False), "")
        self.assertEqual(self.verdict(GUAN_QUE, group="尤"), "")
        self.assertEqual(self.verdict(GUAN_QUE, group="东"), "rhyme")

    def test_tones(self):
        self.assertEqual(self.verdict(GUAN_QUE.replace("依", "不")), "")  # The third is free.
        for old, new in (("日", "山"),   # second of line 1 level: no opposition, no alternation
                         ("河", "水"),   # second of line 2 oblique
                         ("一", "山"),   # three level tones at the end
                         ("目", "山")):  # line 3 ends level
            self.assertEqual(self.verdict(GUAN_QUE.replace(old, new), rhyme=False), "tones", old)
        swapped = "".join(GUAN_QUE[i:i + 12] for i in (0, 0))
        self.assertEqual(self.verdict(swapped, rhyme=False), "tones")  # Adhesion.

    def test_single_lines(self):
        faults = check_verse.line_faults
        for tones in ("OOLLO", "LLOOL", "LLLOO", "OOOLL", "LLOLO", "OLLOL", "LLOOO", "LLOOLLO"):
            self.assertIsNone(faults(tones), tones)
        self.assertEqual(faults("OOOOO"), "great")
        self.assertIn("lone", faults("OLOOL"))
        self.assertIn("lone", faults("OLOOO"))
        self.assertIn("three", faults("OOLLL"))
        self.assertIn("even", faults("OLOLO"))
        self.assertIn("second and fourth", faults("LOLOOLL"))

    def test_a_great_rescue(self):
        # 野火烧不尽 is oblique at its fourth; 春风吹又生 makes up by 吹.
        poem = "离离原上草，一岁一枯荣。野火烧不尽，春风吹又生。"
        self.assertEqual(self.verdict(poem, rhyme=False), "")
        self.assertEqual(self.verdict(poem.replace("吹", "不"), rhyme=False), "tones")


if __name__ == "__main__":
    unittest.main()
