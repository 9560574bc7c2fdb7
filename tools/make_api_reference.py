#!/usr/bin/env python3
"""Makes docs/api.md, the reference of the library, from the comments of include/kvasir/.

usage: make_api_reference.py [--check]

With --check, nothing is written: exit status 1 if the file is not what the headers say.
"""

import argparse
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ("model.h", "session.h", "request.h", "result.h", "version.h", "c_api.h")
OUT = ROOT / "docs" / "api.md"

INTRODUCTION = """# The library

Made from `include/kvasir/` by `tools/make_api_reference.py`. `#include <kvasir/kvasir.h>` has all
of it but the C functions. How to build against it: [embedding](howto/embed.md).
"""
COMMENT = re.compile(r"^\s*//\s?(.*)$")


def split_comment(lines):
    """The comment that a declaration begins with, as prose, and the declaration."""
    prose = []
    while lines and (match := COMMENT.match(lines[0])):
        prose.append(match[1])
        lines = lines[1:]
    return " ".join(prose).strip(), lines


def declarations(text):
    """Blocks of lines at the outermost level of the namespace or of extern "C", comments first."""
    blocks, block, depth = [], [], 0
    for line in text.splitlines():
        if not line.strip() and depth == 0:
            if block:
                blocks.append(block)
            block = []
            continue
        block.append(line)
        depth += line.count("{") - line.count("}")
    return blocks + ([block] if block else [])


def body_of(text):
    """What the header declares: without guard, includes and namespace."""
    text = re.sub(r"/\*(.*?)\*/", lambda m: "\n".join(
        "//" + (" " + part if part else "") for part in
        (line.strip().removeprefix("*").strip() for line in m[1].strip().splitlines())), text,
        flags=re.S)
    if "namespace kvasir {" in text:
        text = text[text.index("namespace kvasir {"):text.rindex("}  // namespace kvasir")]
        text = text.split("\n", 1)[1]
    else:
        text = text[text.index('extern "C" {'):text.rindex("#ifdef __cplusplus")]
        text = text.split("#endif\n", 1)[1]
    return text


def public_part(lines):
    """Without what is private or the library's own, and without the mark of exported names."""
    kept, skipping = [], False
    for line in lines:
        if re.match(r"^ (private):", line):
            skipping = True
        elif re.match(r"^};", line):
            skipping = False
            while kept and not kept[-1].strip():
                kept.pop()
        if not skipping:
            kept.append(line.replace("KVASIR_API ", ""))
    text = re.sub(r"\s+// NOLINT\(\S+\)", "", "\n".join(kept))
    return re.sub(r"\n\n  struct Impl;\n  // For the library's own use\.\n.*?\n(?=};)", "\n", text,
                  flags=re.S)


def heading(lines):
    first = " ".join(lines)
    named = re.match(r"\s*(?:typedef )?(class|struct|enum class|enum) (?:KVASIR_API )?(\w+)", first)
    if named and "{" in first:
        return f"{named[1].split()[0]} {named[2]}"
    named = re.match(r"\s*template <[^>]*> class \S+ (\w+)", first)
    return f"class {named[1]}" if named else None


def reference(header):
    text = (ROOT / "include" / "kvasir" / header).read_text(encoding="utf-8")
    top = text.splitlines()
    if text.startswith("/*"):
        about = " ".join(line.strip(" */") for line in text[:text.index("*/")].splitlines())
    else:
        about, _ = split_comment(top)
    out = [f"## `kvasir/{header}`", "",
           textwrap.fill(" ".join(about.split()), 100, break_on_hyphens=False), ""]
    for block in declarations(body_of(text)):
        prose, lines = split_comment(block)
        title = heading(lines) if lines else None
        if title:
            out += [f"### {title}", ""]
        if prose:
            out += [textwrap.fill(prose, 100, break_on_hyphens=False), ""]
        if lines:
            code = public_part(lines)
            out += ["```c" if header == "c_api.h" else "```cpp", code, "```", ""]
    return out


def make():
    lines = [INTRODUCTION]
    for header in HEADERS:
        lines += reference(header)
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description="makes docs/api.md from the headers")
    parser.add_argument("--check", action="store_true")
    made = make()
    if not parser.parse_args().check:
        OUT.write_text(made, encoding="utf-8")
        return 0
    if OUT.exists() and OUT.read_text(encoding="utf-8") == made:
        return 0
    print(f"{OUT.relative_to(ROOT)} is not what include/kvasir/ says: run "
          "tools/make_api_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
