#!/usr/bin/env python3
"""Every poem that `verse --tones --rhyme` writes keeps every rule, at temperature 1.

usage: proof_test.py --program KVASIR

Uses the bundled model. KVASIR_VERSE_POEMS (300): poems of each form.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import check_verse

BATCH = 2000  # Poems of one run of the program.
# What is asked besides the form: flags, and what the judge is told.
SETTINGS = ((("--tones", "--rhyme"), {}),
            (("--tones",), {"rhyme": False}),
            (("--rhyme",), {"tones": False}),
            (("--tones", "--rhyme", "--rhyme-group", "风"), {"group": "东"}),
            (("--tones", "--rhyme", "--heads"), {}))
HEADS = "春江花月夜有山客"


def poems(program, form, flags, count, seed):
    with tempfile.TemporaryFile() as out:
        subprocess.run([program, "verse", "--form", form, *flags, "--temperature", "1", "--count",
                        str(count), "--seed", str(seed), "--json"], stdout=out, check=True)
        out.seek(0)
        return [choice["text"] for choice in json.load(out)["choices"]]


def check(program, form, flags, asked, wanted, table):
    """Prints one line; returns how many poems break a rule."""
    done, broken, seed = 0, [], 1
    lines, chars = check_verse.FORMS[form]
    if flags[-1] == "--heads":
        flags = (*flags, HEADS[:lines])
    while done < wanted:
        for poem in poems(program, form, flags, min(BATCH, wanted - done), seed):
            fault = check_verse.judge(poem, form, table, **asked)
            if "--heads" in flags and poem[::chars + 1] != HEADS[:lines]:
                fault = "heads"
            if fault:
                broken.append((seed, fault, poem))
            done += 1
        seed += 1
    share = 100 * (done - len(broken)) / done
    print(f"{form} {' '.join(flags)}: {share:.3f} % of {done} poems", *broken[:5], flush=True)
    return len(broken)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    program = os.path.abspath(parser.parse_args().program)
    os.environ.pop("KVASIR_MODEL", None)
    wanted = int(os.environ.get("KVASIR_VERSE_POEMS", "300"))
    table = check_verse.Table()
    broken = 0
    for form in check_verse.FORMS:
        for i, (flags, asked) in enumerate(SETTINGS):
            # The whole number for all rules at once, a tenth for each other setting.
            broken += check(program, form, flags, asked, wanted if i == 0 else -(-wanted // 10),
                            table)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
