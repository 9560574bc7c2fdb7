#!/usr/bin/env python3
"""How large the program is, how fast it starts, and what it links: docs/footprint.md.

usage: footprint.py --build FOLDER [--runs N] [--write]

Prints the page; with --write, it replaces docs/footprint.md. FOLDER is a finished release build.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "footprint.md"
MODEL = ROOT / "models" / "tang-lesson.gguf"


def output(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True).stdout


def stripped_bytes(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "stripped")
        output("strip", "-o", copy, path)
        return copy.stat().st_size


def needed(path):
    """The shared libraries that the file itself names."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(\S+)\]", output("readelf", "-d", path))


def loaded(path):
    """Every library that the loader maps for it, with its file."""
    found = re.findall(r"^\s*(\S+) => (\S+)", output("ldd", path), re.M)
    return {name: pathlib.Path(file).resolve() for name, file in found}


def package_of(file):
    done = subprocess.run(["dpkg", "-S", str(file)], capture_output=True, text=True, check=False)
    if done.returncode != 0 and str(file).startswith("/usr/lib"):  # Debian's merged /usr.
        done = subprocess.run(["dpkg", "-S", str(file).removeprefix("/usr")], capture_output=True,
                              text=True, check=False)
    return done.stdout.split(":")[0] or "–"


def forget(files):
    """Asks the system to drop what it holds of these files in memory."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def timed(runs, command, files=()):
    """Median milliseconds and largest resident MiB of so many runs, each after forgetting files."""
    times, peak = [], 0
    for _ in range(runs):
        forget(files)
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        times.append(1000 * (time.perf_counter() - begin))
        if status != 0:
            raise SystemExit(f"{command}: status {status}")
        peak = max(peak, usage.ru_maxrss / 1024)
    return statistics.median(times), peak


def processor():
    match = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return match[1] if match else os.uname().machine


def size_rows(build):
    files = (("`kvasir`, the program", build / "kvasir"),
             ("`libkvasir.so`", build / "libkvasir.so"), ("`tang-lesson.gguf`", MODEL))
    for name, path in files:
        size = path.stat().st_size if path == MODEL else stripped_bytes(path)
        yield f"| {name} | {size / 2**20:.2f} |"


def start_rows(build, runs):
    program = str(build / "kvasir")
    files = [program, MODEL, *loaded(program).values()]
    first = [program, "generate", "-m", str(MODEL), "-p", "春", "-n", "1", "--seed", "1"]
    for name, command in (("`kvasir --version`", [program, "--version"]),
                          ("`kvasir generate -n 1`: model read, a prompt, one token", first)):
        warm, peak = timed(runs, command)
        cold, _ = timed(max(3, runs // 3), command, files)
        yield f"| {name} | {warm:.1f} | {cold:.1f} | {peak:.1f} |"


def library_rows(build):
    program, library = build / "kvasir", build / "libkvasir.so"
    of_program, of_library = needed(program), needed(library)
    files = {**loaded(program), **loaded(library)}
    for name in sorted(set(of_program) | set(of_library)):
        if name not in files:  # The loader itself.
            continue
        file = files[name]
        yield (f"| {name} | {package_of(file)} | {file.stat().st_size / 2**10:.0f} | "
               f"{'yes' if name in of_program else ''} | {'yes' if name in of_library else ''} |")


def make(build, runs):
    indirect = len(loaded(build / "kvasir")) - len(
        [name for name in needed(build / "kvasir") if name in loaded(build / "kvasir")])
    return "\n".join([
        "# Size, start, and what is linked", "",
        "Written by `python3 tools/footprint.py --build build/release --write` on a machine with "
        f"{os.cpu_count()}", f"cores, {processor()}.", "",
        "## Size", "", "| file, stripped | MiB |", "|---|---|", *size_rows(build), "",
        "## Start", "",
        f"Medians of {runs} runs, process start to exit. Cold: the program, its libraries and",
        "the model dropped from memory before each run; libraries that other programs use stay.",
        "",
        "| command | ms | ms cold | peak MiB |", "|---|---|---|---|",
        *start_rows(build, runs), "",
        "## Libraries", "",
        f"Of Debian 12; {indirect} more come with these. Whoever links `libkvasir.a` links those "
        "of the last column.", "",
        "| library | package | KiB | program | libkvasir.so |",
        "|---|---|---|---|---|",
        *library_rows(build), ""])


def main():
    parser = argparse.ArgumentParser(description="size, start and libraries of the program")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    page = make(options.build.resolve(), options.runs)
    if options.write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
