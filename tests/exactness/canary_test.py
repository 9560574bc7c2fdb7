"""`kvasir verify` sees one wrong order of one sum.

--canary is the program with a norm whose lane sums run backwards where a row's address is odd in
units of its length: the answer then depends on where rows lie, which verify must find, and nothing
else about the program differs.
"""

import argparse
import json
import subprocess
import sys
import unittest

PROGRAM = CANARY = MODEL = ""


def verify(program):
    result = subprocess.run(
        [program, "verify", "-m", MODEL, "--trials", "2", "--seed", "1", "--json"],
        capture_output=True, text=True, check=False)
    return result.returncode, json.loads(result.stdout)


class CanaryTest(unittest.TestCase):
    def test_the_canary_is_refused(self):
        status, report = verify(CANARY)
        self.assertEqual(status, 1)
        self.assertGreater(report["mismatches"], 0)
        wrong = [name for name, axis in report["axes"].items() if axis["mismatches"] > 0]
        self.assertIn("prefill_chunk", wrong)
        self.assertIn("batch", wrong)

    def test_the_program_is_not(self):
        status, report = verify(PROGRAM)
        self.assertEqual(status, 0)
        self.assertEqual(report["mismatches"], 0)
        self.assertGreater(report["comparisons"], 1000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--canary", required=True)
    parser.add_argument("--model", required=True)
    options, rest = parser.parse_known_args()
    PROGRAM, CANARY, MODEL = options.program, options.canary, options.model
    unittest.main(argv=[sys.argv[0], *rest])
