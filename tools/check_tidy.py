#!/usr/bin/env python3
"""Checks what docs/testing.md calls the tidy tree: sizes, guards, blanks, tests, decision records.

usage: check_tidy.py [--root DIR]

Prints each fault as FILE:LINE: message, notes on large files, and one line of figures. Exit status
1 if there is a fault.
"""

import argparse
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tests", "fuzz", "bench", "examples", "tools", "cmake", "docs", ".ci",
           "web", "models", "packaging", "python")
CODE = {".cc", ".h", ".py", ".cmake", ".sh", ".js"}
TEXT = CODE | {".md", ".txt", ".json", ".yml", ".css", ".html"}
# Data that tests read byte by byte: not ours to tidy.
DATA = re.compile(r"^(fuzz/(corpus|canary)/|tests/.*/(data|golden)/|tests/(data|golden)/)")
GENERATED = re.compile(r"(_table|_tables|_generated)\.(h|cc)$")

REFUSED_LINES = 1000
REMARKED_LINES = 500
MEDIAN_LINES = 250
TEST_SHARE = {"src": 0.6, "src/kvcache": 1.0}
ASSERTIONS_PER_1000 = 15

# Sources without a test of their own, and why that is right.
UNTESTED = {
    "src/kernels/attention_reference.cc": "declared in attention.h; the kernel's test compares it",
    "src/kernels/latent_attention_reference.cc": "declared in latent_attention.h; tested there",
    "src/constraints/schema_object_shapes.cc": "declared in schema_shapes.h; tested with it",
    "src/formats/gguf_value.cc": "gguf_reader_test.cc reads values of every type",
    "src/formats/printable.cc": "the tests of messages in formats and model show its work",
    "src/model/gpt2_reader.cc": "model_file_test.cc reads good and bad files",
    "src/model/deepseek_writer.cc": "declared in model_file.h; deepseek_reader_test.cc round-trips",
    "src/model/llama_writer.cc": "declared in model_file.h; llama_file_test.cc round-trips",
    "src/model/gpt2_writer.cc": "declared in model_file.h; model_file_test.cc round-trips",
    "src/formats/tokenizer_json_steps.cc": "tokenizer_json_test.cc reads every step",
    "src/model/any_model_file.cc": "hf_writer_test.cc opens files and folders",
    "src/model/hf_config_writer.cc": "declared in hf_writer.h; hf_writer_test.cc reads it back",
    "src/model/hf_folder.cc": "hf_writer_test.cc reads whole, cut and wrong folders",
    "src/model/hf_keys.cc": "hf_config_test.cc shows its work",
    "src/model/hf_rope.cc": "hf_config_test.cc reads and writes each scaling",
    "src/model/hf_vocabulary_writer.cc": "declared in hf_writer.h; hf_vocabulary_test.cc tests it",
    "src/training/checkpoint.cc": "declared in trainer.h; trainer_test.cc saves and resumes",
    "src/server/connection.cc": "server_test.cc drives it over real sockets",
    "src/server/connection_replies.cc": "likewise; declared in connection.h",
    "src/server/connection_stream.cc": "likewise",
    "src/engine/scheduler_reports.cc": "declared in scheduler.h; scheduler_test.cc reads them",
    "src/engine/scheduler_step.cc": "declared in scheduler.h; scheduler_test.cc steps",
    "src/api/answer_builder.cc": "session_test.cc gathers, stops and throws",
    "src/api/c_api_request.cc": "declared in c_api.h; c_api_test.cc sets every field",
    "src/api/engine_request.cc": "session_test.cc sets and refuses every field",
    "src/api/public_error.cc": "session_test.cc and model_test.cc read codes",
    "src/api/request.cc": "c_api_test.cc reads the names",
    "src/api/version.cc": "model_test.cc compares it with the header",
    "src/cli/main/main.cc": "calls the library's entry point; the end-to-end tests run it",
}

WORD = "TO" + "DO"  # Split, so that this file passes its own check.
UNNUMBERED = re.compile(rf"\b(?:{WORD}(?!\(#\d+\))|FIX" + r"ME|XX" + r"X)\b")
MACHINE_PATH = re.compile(
    r"(?<![\w.~$})/:-])/(?:home|root|Users|work|workspace|mnt|media|srv|builds)/")
ASSERTION = re.compile(r"\b(?:EXPECT_\w+|ASSERT_\w+|KV_D?CHECK)\b\s*\(|\bself\.assert\w+\(")


class Tree:
    """The text files of a checkout, and the faults found in them."""

    def __init__(self, root):
        self.root = root
        self.faults = []
        self.lines = {}
        for path in self.candidates():
            name = path.relative_to(root).as_posix()
            if DATA.match(name):
                continue
            try:
                text = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                self.faults.append(f"{name}: not UTF-8")
                continue
            self.lines[name] = text.split("\n")
            if not text.endswith("\n") or text.endswith("\n\n"):
                self.faults.append(f"{name}: must end with exactly one newline")

    def candidates(self):
        for path in sorted(self.root.iterdir()):
            if path.is_file() and (path.suffix in TEXT or path.name == "dev"):
                yield path
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if "__pycache__" in path.parts or not path.is_file():
                    continue
                if path.suffix in TEXT or path.name == "run":
                    yield path

    def fault(self, name, number, message):
        self.faults.append(f"{name}:{number}: {message}")

    def count(self, name):
        return len(self.lines[name]) - 1

    def code(self, prefix=""):
        """Names of C++ files under a folder."""
        return [n for n in self.lines if n.startswith(prefix) and n.endswith((".cc", ".h"))]


def is_test(name):
    return bool(name.startswith(("tests/", "fuzz/"))
                or re.search(r"_(test|fuzz)(_\w+)?\.\w+$", name))


def check_lines(tree):
    for name, lines in tree.lines.items():
        is_code = pathlib.PurePath(name).suffix in CODE or name.endswith("CMakeLists.txt")
        is_code = is_code or name in ("dev", ".ci/run")
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                tree.fault(name, number, "tab")
            if line != line.rstrip():
                tree.fault(name, number, "trailing blank or carriage return")
            if MACHINE_PATH.search(line):
                tree.fault(name, number, "path of one machine")
            if is_code and UNNUMBERED.search(line):
                tree.fault(name, number, f"{WORD} without a number: {WORD}(#12)")
            if name.startswith("include/") and WORD in line:
                tree.fault(name, number, f"{WORD} in a public header")
            if len(line) > 100 and is_code and "http" not in line:
                tree.fault(name, number, f"{len(line)} columns; 100 are allowed")


def check_sizes(tree):
    counts = []
    for name in tree.lines:
        if pathlib.PurePath(name).suffix not in CODE or GENERATED.search(name):
            continue
        count = tree.count(name)
        counts.append(count)
        if count > REFUSED_LINES:
            tree.fault(name, count, f"{count} lines; {REFUSED_LINES} are allowed")
        elif count > REMARKED_LINES:
            print(f"note: {name} has {count} lines; over {REMARKED_LINES} asks for a reason")
    median = statistics.median(counts) if counts else 0
    if median > MEDIAN_LINES:
        tree.faults.append(f"the median file has {median} lines; {MEDIAN_LINES} are allowed")
    return median


def check_guards(tree):
    for name in tree.code():
        if not name.endswith(".h"):
            continue
        inner = name.split("/", 1)[1]
        guard = re.sub(r"[^A-Z0-9]", "_", inner.upper()) + "_"
        guard = guard if guard.startswith("KVASIR_") else "KVASIR_" + guard
        text = "\n".join(tree.lines[name])
        if name.endswith("-inl.h") and "HWY_TARGET_TOGGLE" in text:
            # Highway's per-target guard flips itself at each inclusion; only its name is fixed.
            if guard.removesuffix("_") not in text:
                tree.fault(name, 1, f"per-target guard must be {guard}")
            continue
        expected = rf"#ifndef {guard}\n#define {guard}\n"
        if not re.search(expected, text) or not text.rstrip().endswith(f"#endif  // {guard}"):
            tree.fault(name, 1, f"header guard must be {guard}, with the comment at #endif")


def check_tests_beside(tree):
    """X.cc needs X_test.cc beside it, or a test in its folder that includes X.h."""
    for name in tree.code("src/"):
        if not name.endswith(".cc") or re.search(r"_(test|fuzz|bench)\.cc$", name):
            continue
        if name.removesuffix(".cc") + "_test.cc" in tree.lines or name in UNTESTED:
            continue
        if name.startswith("src/cli/"):  # Commands are tested as users run them: tests/cli.
            continue
        folder = name.rsplit("/", 1)[0] + "/"
        include = f'#include "{name.removeprefix("src/").removesuffix(".cc")}.h"'
        tests = [n for n in tree.code(folder) if n.endswith("_test.cc")]
        if not any(include in tree.lines[test] for test in tests):
            tree.fault(name, 1, "no test: neither its _test.cc nor a test here that includes it")
    for name in UNTESTED:
        if tree.root == HERE and name not in tree.lines:
            tree.faults.append(f"tools/check_tidy.py: UNTESTED names {name}, which is gone")


def check_shares(tree):
    figures = []
    for folder, wanted in TEST_SHARE.items():
        names = tree.code(folder + "/")
        source = sum(tree.count(n) for n in names if not is_test(n))
        test = sum(tree.count(n) for n in names if is_test(n))
        if folder == "src":
            test += sum(tree.count(n) for n in tree.lines
                        if n.startswith(("tests/", "fuzz/")) and n.endswith((".cc", ".py")))
        share = test / source if source else wanted
        figures.append(f"{folder} {test}/{source} = {share:.2f}")
        if share < wanted:
            tree.faults.append(f"{folder}: {test} test lines to {source} source lines = "
                               f"{share:.2f}; at least {wanted} are wanted")
    return ", ".join(figures)


def check_assertions(tree):
    names = [n for n in tree.lines if n.startswith(("src/", "tests/", "include/"))
             and n.endswith((".cc", ".h", ".py"))]
    total = sum(tree.count(n) for n in names)
    found = sum(1 for n in names for line in tree.lines[n] if ASSERTION.search(line))
    rate = 1000 * found / total if total else ASSERTIONS_PER_1000
    if rate < ASSERTIONS_PER_1000:
        tree.faults.append(f"{found} assertions in {total} lines = {rate:.1f} per 1,000; "
                           f"at least {ASSERTIONS_PER_1000} are wanted")
    return rate


def check_records(tree):
    """docs/adr/NNNN-title.md: numbers from 0001 without a gap, one page, four headings."""
    names = sorted(n for n in tree.lines if n.startswith("docs/adr/"))
    for expected, name in enumerate(names, 1):
        match = re.fullmatch(r"docs/adr/(\d{4})-[a-z0-9-]+\.md", name)
        if not match or int(match[1]) != expected:
            tree.fault(name, 1, f"decision records are numbered without a gap: {expected:04d} here")
            return
        text = "\n".join(tree.lines[name])
        for heading in ("## Context", "## Decision", "## Consequences", "## How it is tested"):
            if heading not in text:
                tree.fault(name, 1, f"lacks the heading {heading}")


def main():
    parser = argparse.ArgumentParser(description="checks sizes, guards, blanks, tests, records")
    parser.add_argument("--root", type=pathlib.Path, default=HERE)
    tree = Tree(parser.parse_args().root)
    check_lines(tree)
    check_guards(tree)
    check_tests_beside(tree)
    check_records(tree)
    median = check_sizes(tree)
    shares = check_shares(tree)
    rate = check_assertions(tree)
    for fault in tree.faults:
        print(fault)
    print(f"check_tidy: {len(tree.faults)} faults; median file {median:g} lines; "
          f"tests to sources: {shares}; {rate:.1f} assertions per 1,000 lines")
    return 1 if tree.faults else 0


if __name__ == "__main__":
    sys.exit(main())
