#!/usr/bin/env python3
"""Checks every #include against the layers table of docs/architecture.md, the only such table.

usage: check_layers.py [--root DIR]

A row names a folder's rank, the folders it may include and the outside headers it may use. Refused:
an include the row does not name, a folder without a row or a row without a folder, a row that names
a folder of equal or higher rank, an include of a file that does not exist, and a CMake target whose
DEPS go beyond its row. Standard C and C++ headers are free; GoogleTest belongs to *_test.cc, Google
Benchmark to *_bench.cc. Exit status 1 if anything is refused.
"""

import argparse
import dataclasses
import pathlib
import re
import sys

TABLE_HEADER = ["rank", "folder", "what lives there", "may include", "outside headers"]
TREES = ("src", "include")
SUFFIXES = {".h", ".cc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
LAYER_CALL = re.compile(r"kvasir_layer\(\s*(\w+)([^)]*)\)")

STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
    chrono cinttypes climits clocale cmath codecvt compare complex concepts condition_variable
    coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar
    cwctype deque exception execution filesystem format forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
    memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio
    regex scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept
    stop_token streambuf string string_view syncstream system_error thread tuple type_traits
    typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    """.split()
)
# Written "posix" in the table: what the operating system adds to the language.
POSIX = re.compile(r"^((?:sys|netinet|arpa)/.*|"
                   r"fcntl|unistd|signal|dlfcn|sched|pthread|termios|dirent|poll|errno|iconv)\.h$")
TEST_ROOTS = {"_test": ["gtest", "gmock"], "_bench": ["benchmark"]}


@dataclasses.dataclass
class Layer:
    rank: int
    includes: list[str]
    outside: list[str]
    has_target: bool  # Headers alone, in include/, have none.


def cell_names(cell):
    """The names of a cell: "base, tensor" or "–" for none; backticks are decoration."""
    names = [name.strip().strip("`") for name in cell.split(",")]
    return [name for name in names if name not in ("", "-", "–")]


def read_table(text, problems):
    """The rows of the layers table in docs/architecture.md, by folder name."""
    layers = {}
    in_table = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells == TABLE_HEADER:
            in_table = True
        elif in_table and not line.startswith("|"):
            break
        elif in_table and not set(line) <= set("|-: "):
            match = re.fullmatch(r"`(src|include)/(\w+)/`", cells[1])
            if len(cells) != len(TABLE_HEADER) or not match or not cells[0].isdigit():
                problems.append(f"docs/architecture.md: not a row of the layers table: {line}")
            elif match[2] in layers:
                problems.append(f"docs/architecture.md: {match[2]} has two rows")
            else:
                layers[match[2]] = Layer(int(cells[0]), cell_names(cells[3]), cell_names(cells[4]),
                                         has_target=match[1] == "src")
    if not layers:
        problems.append("docs/architecture.md: no layers table with header: "
                        + " | ".join(TABLE_HEADER))
    return layers


def check_table(layers, problems):
    for name, layer in layers.items():
        for other in layer.includes:
            if other not in layers:
                problems.append(f"docs/architecture.md: {name} names the unknown folder {other}")
            elif layers[other].rank >= layer.rank:
                problems.append(f"docs/architecture.md: {name} (rank {layer.rank}) may not include "
                                f"{other} (rank {layers[other].rank})")


def outside_allowed(header, layer, stem):
    roots = list(layer.outside)
    for suffix, extra in TEST_ROOTS.items():
        if stem.endswith(suffix) or f"{suffix}_" in stem:  # x_test.cc, x_test_models.h
            roots += extra
            roots.append("posix")  # Tests fork, kill and inspect files.
    if "posix" in roots and POSIX.match(header):
        return True
    return any(header == root or header.startswith(root + "/") for root in roots)


def check_include(root, name, layers, path, header, quoted):
    """None, or what is wrong with this include in a file of folder `name`."""
    folder = header.split("/")[0]
    layer = layers[name]
    if quoted and "/" not in header:
        return f'"{header}" lacks its folder'
    if "/" in header and folder in layers:
        if folder != name and folder not in layer.includes:
            return (f"{header}: {name} may include only "
                    f"{', '.join(layer.includes) or 'its own files'}")
        if not any((root / tree / header).is_file() for tree in TREES):
            return f"{header}: no such file in src/"
        return None
    if not quoted and (header in STANDARD or outside_allowed(header, layer, path.stem)):
        return None
    if quoted and outside_allowed(header, layer, path.stem):
        return None
    return f"{header}: not among {name}'s outside headers ({', '.join(layer.outside) or 'none'})"


def check_sources(root, layers, problems):
    seen = set()
    for tree in TREES:
        for path in sorted((root / tree).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            relative = path.relative_to(root)
            name = relative.parts[1] if len(relative.parts) > 2 else ""
            seen.add(name)
            if name not in layers:
                problems.append(f"{relative}: folder {name or tree} has no row in the layers table")
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                quoted = match[1] is not None
                wrong = check_include(root, name, layers, path, match[1] or match[2], quoted)
                if wrong:
                    problems.append(f"{relative}:{number}: {wrong}")
    for name in layers:
        if name not in seen:
            problems.append(f"docs/architecture.md: the row {name} has no folder with sources")


def check_targets(root, layers, problems):
    """A target links only what its folder may include: its DEPS are kvasir_X of its row."""
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    targets = dict(LAYER_CALL.findall(re.sub(r"#.*", "", text)))
    for name in sorted(set(layers) | set(targets)):
        if name not in targets:
            if not layers[name].has_target:
                continue
            problems.append(f"CMakeLists.txt: no kvasir_layer({name} …)")
        elif name not in layers:
            problems.append(f"CMakeLists.txt: {name} has no row in the layers table")
        else:
            for other in re.findall(r"\bkvasir_(\w+)", targets[name]):
                if other not in layers[name].includes:
                    problems.append(f"CMakeLists.txt: {name} links {other}, "
                                    "which its row does not name")


def check(root):
    problems = []
    layers = read_table((root / "docs/architecture.md").read_text(encoding="utf-8"), problems)
    check_table(layers, problems)
    check_sources(root, layers, problems)
    check_targets(root, layers, problems)
    return problems


def main():
    parser = argparse.ArgumentParser(description="checks #include lines against the layers table")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    problems = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
