#!/usr/bin/env python3
"""Checks the table of known faults in docs/testing.md: every case stands there once, every test
that it names exists, and every test of tests/cases stands in the rows of its cases.

usage: check_cases.py [--root DIR]

A test is named `Suite.Test` (GoogleTest, in src/), `cases.FILE c01` (of tests/cases/FILE_test.py
those whose names hold _c01_) or `FOLDER.FILE test_name` (Python, in tests/FOLDER/FILE_test.py).
A row without a test must say that the case does not apply. Exit status 1 if anything is refused.
"""

import argparse
import pathlib
import re
import sys

HEADER = "| case | what is checked | seen in | where |"
CASES = [f"C{number:02}" for number in range(1, 156, 2)]
MACRO = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
FUNCTION = re.compile(r"^\s+def (test_\w+)\(", re.M)


def read_table(text):
    """The rows as (case, the last cell), in order."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == HEADER:
            next(lines, None)
            break
    rows = []
    for line in lines:
        if not line.startswith("| "):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.append((cells[0], cells[-1]))
    return rows


def unit_tests(root):
    """The names of all GoogleTests, as Suite.Test."""
    return {f"{suite}.{name}" for path in sorted((root / "src").rglob("*_test.cc"))
            for suite, name in MACRO.findall(path.read_text(encoding="utf-8"))}


def functions(root, folder, file):
    """The tests of a script; none if it does not exist."""
    path = root / "tests" / folder / f"{file}_test.py"
    return FUNCTION.findall(path.read_text(encoding="utf-8")) if path.exists() else []


def cases_of(function):
    """The numbers in a name such as test_c89_c91_what_is_checked."""
    numbers = re.match(r"test_((?:c\d+_)*)", function)[1]
    return [number.upper() for number in numbers.split("_") if number]


def missing(root, units, case, name):
    """Why this name stands for no test of the case; empty if it does."""
    if " " not in name:
        return "" if name in units else "no such test in src"
    script, which = name.split(" ", 1)
    folder, _, file = script.partition(".")
    found = functions(root, folder, file)
    if folder != "cases":
        return "" if which in found else f"no such test in tests/{folder}"
    if any(which.upper() in cases_of(function) for function in found):
        return ""
    return f"no test of {case} in tests/cases/{file}_test.py"


def check(root):
    """What is wrong, a line each."""
    rows = read_table((root / "docs" / "testing.md").read_text(encoding="utf-8"))
    problems = [f"{case}: stands {count} times in the table"
                for case in CASES if (count := [row[0] for row in rows].count(case)) != 1]
    problems += [f"{case}: is no case" for case, _ in rows if case not in CASES]
    units = unit_tests(root)
    named = set()
    for case, where in rows:
        names = re.findall(r"`([\w.]+(?: \w+)?)`", where)
        if not names and "does not apply" not in where:
            problems.append(f"{case}: names no test")
        for name in names:
            why = missing(root, units, case, name)
            if why:
                problems.append(f"{case}: '{name}': {why}")
            named.add((case, name.split(" ")[0]))
    for path in sorted((root / "tests" / "cases").glob("*_test.py")):
        file = path.name.removesuffix("_test.py")
        for function in functions(root, "cases", file):
            numbers = cases_of(function)
            if not numbers:
                problems.append(f"{path.name}: {function} names no case")
            for case in numbers:
                if (case, f"cases.{file}") not in named:
                    problems.append(f"{case}: {function} of {path.name} is not in its row")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    problems = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"check_cases: {len(CASES)} cases, {len(problems)} faults")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
