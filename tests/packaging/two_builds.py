#!/usr/bin/env python3
"""Builds the package a second time, from a copy of the tree elsewhere: the same bytes?

usage: two_builds.py --build FOLDER --work FOLDER

FOLDER is a finished release build. Exit status 1, naming the files that differ, if the packages do.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EPOCH = "1700000000"


def run(*command, **how):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, **how)


def pack(build, out):
    shutil.rmtree(out, ignore_errors=True)
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", out, cwd=build,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    return next(out.glob("*.deb"))


def contents(package, out):
    shutil.rmtree(out, ignore_errors=True)
    run("dpkg-deb", "-R", package, out)
    return {path.relative_to(out).as_posix(): path.read_bytes()
            for path in sorted(out.rglob("*")) if path.is_file() and not path.is_symlink()}


def main():
    parser = argparse.ArgumentParser(description="builds the package again, elsewhere")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    build, work = options.build.resolve(), options.work.resolve()
    tree = work / "a copy of the tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, ignore=lambda folder, names: {"build", ".git"} & set(names))
    run("cmake", "-S", tree, "-B", work / "again", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DKVASIR_TESTS=OFF")
    run("cmake", "--build", work / "again")
    first, second = pack(build, work / "first.deb"), pack(work / "again", work / "second.deb")
    same = first.read_bytes() == second.read_bytes()
    print(f"{first.name}: {first.stat().st_size} bytes, {'the same' if same else 'others'} again")
    if same:
        return 0
    ours, theirs = contents(first, work / "first"), contents(second, work / "second")
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            print(f"differs: {name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
