#!/usr/bin/env python3
"""Log-probabilities of llama.cpp, as tests/npm/llama_cpp/compare.py recorded them, and ours."""

import json
import pathlib

import llama_cpp_models
import program

RECORDED = pathlib.Path(__file__).resolve().parent / "data/llama_cpp.json"


class LlamaCppTest(program.CliTest):
    def test_log_probabilities_and_best_tokens(self):
        models = llama_cpp_models.make()
        seen = set()
        for entry in json.loads(RECORDED.read_text()):
            name, dtype = entry["model"], entry["dtype"]
            with self.subTest(model=name, dtype=dtype):
                self.assertEqual(entry["text"], llama_cpp_models.TEXT)
                files = llama_cpp_models.Files(program.PROGRAM, self.home, name, dtype,
                                               models[name])
                rows = [{token: value for token, value in row} for row in entry["best"]]
                faults, note = files.compare(entry["ids"], rows)
                self.assertEqual(faults, [], note)
                seen.add((name, dtype))
        self.assertEqual(seen, {(name, dtype) for name in models
                                for dtype in llama_cpp_models.DTYPES})


if __name__ == "__main__":
    program.main()
