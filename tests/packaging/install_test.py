#!/usr/bin/env python3
"""What is installed, and projects built on it, by find_package and by pkg-config.

usage: install_test.py --build FOLDER [unittest's arguments]

The prefix is moved after installing: nothing in it may know where it was made.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = None  # Set before the tests run.

INSTALLED = """bin/kvasir include/kvasir/c_api.h include/kvasir/kvasir.h include/kvasir/model.h
    include/kvasir/request.h include/kvasir/result.h include/kvasir/session.h
    include/kvasir/version.h lib/libkvasir.a lib/libkvasir.so lib/libkvasir.so.0.1
    lib/libkvasir.so.0.1.0 lib/cmake/kvasir/kvasir-config.cmake
    lib/cmake/kvasir/kvasir-config-version.cmake lib/cmake/kvasir/kvasir-targets.cmake
    lib/pkgconfig/kvasir.pc lib/systemd/system/kvasir.service
    share/man/man1/kvasir.1 share/bash-completion/completions/kvasir
    share/zsh/vendor-completions/_kvasir share/doc/kvasir/copyright share/doc/kvasir/README.md
    share/doc/kvasir/CHANGELOG.md""".split()
# What include/kvasir/ declares, as the linker's list has it; C's functions begin with kvasir_.
EXPORTED = re.compile(r"^(kvasir_\w+|kvasir::(Model::|Session::|Version\(|NumericsContract\(|"
                      r"FinishReasonName\().*)$")


def run(*command, **how):
    environment = {k: v for k, v in os.environ.items() if k != "KVASIR_MODEL"}
    environment.update(how.pop("env", {}))
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=environment, check=False, **how)
    if done.returncode != 0:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        top = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", top / "first")
        cls.top, cls.prefix = top, top / "moved"
        shutil.move(top / "first", cls.prefix)
        cls.said = run(BUILD / "kvasir", "generate", "-p", "春", "-n", "24", "--seed", "1",
                       cwd="/")

    def test_exactly_this_is_installed(self):
        found = {path.relative_to(self.prefix).as_posix() for path in self.prefix.rglob("*")
                 if not path.is_dir()}
        found = {name for name in found if not name.startswith("lib/cmake/kvasir/kvasir-targets-")}
        models = [f"share/kvasir/models/{path.name}" for path in ROOT.glob("models/*.gguf")]
        self.assertEqual(sorted(found), sorted(INSTALLED + models))

    def test_the_program_finds_the_bundled_model(self):
        said = run(self.prefix / "bin/kvasir", "generate", "-p", "春", "-n", "24", "--seed", "1",
                   "--json", cwd="/")
        self.assertIn(f'"{self.prefix}/share/kvasir/models/tang-lesson.gguf"', said)
        self.assertEqual(run(self.prefix / "bin/kvasir", "generate", "-p", "春", "-n", "24",
                             "--seed", "1", cwd="/"), self.said)

    def test_the_shared_library_shows_the_api_alone(self):
        library = self.prefix / "lib/libkvasir.so"
        names = run("nm", "-D", "-C", "--defined-only", library).splitlines()
        names = [line.split(maxsplit=2)[2] for line in names]
        self.assertEqual([name for name in names if not EXPORTED.match(name)], [])
        declared = set(re.findall(r"\b(kvasir_\w+)\(", (ROOT / "include/kvasir/c_api.h").read_text(
            encoding="utf-8")))
        self.assertEqual(declared - {"kvasir_callback"}, {n for n in names if "::" not in n})

    def test_a_project_that_finds_the_package(self):
        build = self.top / "consumer"
        run("cmake", "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DEXAMPLE={ROOT / 'examples/embed.cc'}", "-G", "Ninja")
        run("cmake", "--build", build)
        shared = run(build / "embed_kvasir", cwd="/")
        models = (build / "models.txt").read_text(encoding="utf-8")
        static = run(build / "embed_kvasir_static", f"{models}/tang-lesson.gguf", cwd="/")
        self.assertRegex(shared, r"\A\w{4}，\w{5}。\n-[\d.]+ nats\n\Z")
        self.assertEqual(shared, static)
        self.assertEqual(run(build / "from_c", cwd="/"), self.said)

    def test_a_program_by_pkg_config(self):
        env = {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "kvasir", env=env).split()
        self.assertEqual(run("pkg-config", "--modversion", "kvasir", env=env).strip(), "0.1.0")
        models = run("pkg-config", "--variable=modelsdir", "kvasir", env=env).strip()
        self.assertTrue((pathlib.Path(models) / "tang-lesson.gguf").exists())
        program = self.top / "from_c"
        run("cc", HERE / "consumer/from_c.c", "-o", program, *flags)
        self.assertEqual(run(program, cwd="/", env={"LD_LIBRARY_PATH": self.prefix / "lib"}),
                         self.said)
        private = run("pkg-config", "--static", "--libs", "kvasir", env=env).split()
        static = [str(self.prefix / "lib/libkvasir.a") if flag == "-lkvasir" else flag
                  for flag in private]
        run("c++", self.compiled_c(flags), "-o", program, *static)
        self.assertEqual(run(program, f"{models}/tang-lesson.gguf", cwd="/"), self.said)

    def compiled_c(self, flags):
        made = self.top / "from_c.o"
        run("cc", "-c", HERE / "consumer/from_c.c", "-o", made,
            *[flag for flag in flags if flag.startswith("-I")])
        return made

    def test_the_readme_shows_the_example(self):
        text = (ROOT / "examples/embed.cc").read_text(encoding="utf-8")
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        body = text[text.index("#include"):]
        self.assertIn(f"```cpp\n{body}```", readme)
        self.assertLessEqual(len([line for line in body.splitlines() if line.strip()]), 20)


if __name__ == "__main__":
    ARGS = argparse.ArgumentParser()
    ARGS.add_argument("--build", type=pathlib.Path, required=True)
    OPTIONS, REST = ARGS.parse_known_args()
    BUILD = OPTIONS.build.resolve()
    unittest.main(argv=["install_test.py", *REST])
