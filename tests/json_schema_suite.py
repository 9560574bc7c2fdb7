#!/usr/bin/env python3
"""Judges public collections of JSON Schemas and instances with `kvasir check`.

usage: json_schema_suite.py --program build/release/kvasir [--data DIR]

DIR (default ../shared/data beside the checkout) holds json-schema/draft2020-12, the public test
suite, and json-schema-real, real schemas whose verdicts assert `format`. Prints for each how many
schemas compile or are refused and how many verdicts are right or wrong, each wrong one by name.
Exit status 1 if a verdict is wrong or too few schemas compile; 0 also where DIR is absent, since
nothing is measured then.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Keywords beyond those that are promised: schemas that use them may be refused.
BEYOND = {"uniqueItems", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "minContains",
          "maxContains", "contains", "if", "then", "else", "dependentSchemas", "dependentRequired",
          "$vocabulary", "$dynamicAnchor", "dependencies"}


def cases(data):
    """(collection, name, schema, asserts formats, [(instance, verdict)])"""
    suite = data / "json-schema" / "draft2020-12"
    for path in sorted(suite.rglob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            yield ("suite", f"{path.relative_to(suite)}: {group['description']}", group["schema"],
                   False, [(t["data"], t["valid"]) for t in group["tests"]])
    for path in sorted((data / "json-schema-real").glob("*.json")):
        real = json.loads(path.read_text(encoding="utf-8"))
        tests = [(t["data"], t["valid"]) for t in real.get("tests", [])]
        if tests:
            yield "real", path.name, real["schema"], True, tests


def keywords(schema):
    """Every member name in the schema: more than its keywords, never fewer."""
    found = set()
    if isinstance(schema, dict):
        found |= set(schema)
    if isinstance(schema, (dict, list)):
        for part in schema.values() if isinstance(schema, dict) else schema:
            found |= keywords(part)
    return found


def judge(program, schema, formats, texts):
    """The program's verdicts, or None and its message if it refuses the schema."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(schema, file)
        file.flush()
        command = [program, "check", "--json", "--json-schema", file.name, "--formats",
                   "assert" if formats else "annotate", "--", *texts]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 2:
        return None, done.stderr.strip()
    results = json.loads(done.stdout)["results"]
    return [result["complete"] for result in results], ""


def measure(program, data):
    counts = collections.defaultdict(collections.Counter)
    for collection, name, schema, formats, tests in cases(data):
        count = counts[collection]
        promised = not keywords(schema) & BEYOND
        verdicts, message = judge(program, schema, formats, [json.dumps(t) for t, _ in tests])
        count["schemas"] += 1
        count["promised"] += promised
        if verdicts is None:
            count["refused"] += 1
            # A schema that nothing satisfies is judged right by refusing it.
            if "no value satisfies" in message and not any(valid for _, valid in tests):
                count["empty"] += 1
                count["promised compiled"] += promised
            continue
        count["compiled"] += 1
        count["promised compiled"] += promised
        for (instance, valid), verdict in zip(tests, verdicts, strict=True):
            count["right" if valid == verdict else "wrong"] += 1
            if valid != verdict:
                print(f"wrong: {name}: {json.dumps(instance)[:200]} is "
                      f"{'valid' if valid else 'invalid'}")
    return counts


def main():
    parser = argparse.ArgumentParser(description="judges public JSON Schemas with kvasir check")
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    arguments = parser.parse_args()
    if not (arguments.data / "json-schema").is_dir():
        print(f"json_schema_suite: {arguments.data} has no json-schema: nothing to measure")
        return 0
    counts = measure(arguments.program, arguments.data)
    failed = False
    for collection, least in (("suite", 75), ("real", 80)):
        count = counts[collection]
        share = 100 * count["promised compiled"] / max(1, count["promised"])
        if collection == "real":
            share = 100 * count["compiled"] / max(1, count["schemas"])
        failed = failed or count["wrong"] > 0 or share < least
        print(f"{collection}: {count['schemas']} schemas, {count['compiled']} compiled, "
              f"{count['refused']} refused ({count['empty']} of them hold nothing); {share:.1f} % "
              f"of those promised; verdicts: {count['right']} right, {count['wrong']} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
