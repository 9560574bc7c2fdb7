#!/usr/bin/env python3
"""The Debian package: what is in it, that it runs, and that packing twice gives the same bytes.

usage: deb_test.py --build FOLDER [unittest's arguments]
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

BUILD = None  # Set before the tests run.
EPOCH = 1_700_000_000


def run(*command, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **how)
    if done.returncode != 0:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "dpkg-dev is not installed")
class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.top = pathlib.Path(cls.folder.name)
        cls.package = cls.pack("first")
        cls.tree = cls.top / "tree"
        run("dpkg-deb", "-x", cls.package, cls.tree)

    @classmethod
    def pack(cls, name):
        folder = cls.top / name
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder,
            cwd=BUILD, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)})
        return next(folder.glob("*.deb"))

    def field(self, name):
        return run("dpkg-deb", "-f", self.package, name).strip()

    def test_its_name_and_what_it_needs(self):
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"kvasir_0.1.0_{architecture}.deb")
        self.assertEqual(self.field("Package"), "kvasir")
        depends = self.field("Depends")
        for library in ("libc6", "libstdc++6", "libfmt9"):
            self.assertIn(library, depends)
        self.assertNotIn("-dev", depends)

    def test_it_runs_from_where_it_is_unpacked(self):
        said = run(self.tree / "usr/bin/kvasir", "generate", "-p", "春", "-n", "24", "--seed", "1",
                   cwd="/")
        self.assertEqual(said, run(BUILD / "kvasir", "generate", "-p", "春", "-n", "24", "--seed",
                                   "1", cwd="/"))

    def test_the_service_starts_what_is_installed(self):
        unit = self.tree / "usr/lib/systemd/system/kvasir.service"
        text = unit.read_text(encoding="utf-8")
        program = re.search(r"ExecStart=/(\S+) serve", text)[1]
        self.assertTrue((self.tree / program).exists())
        if shutil.which("systemd-analyze"):
            here = self.top / "kvasir.service"
            here.write_text(text.replace(f"/{program} ", f"{self.tree}/{program} "),
                            encoding="utf-8")
            self.assertEqual(run("systemd-analyze", "verify", "--man=no", here), "")

    def test_the_manual_and_the_completions(self):
        manual = (self.tree / "usr/share/man/man1/kvasir.1").read_text(encoding="utf-8")
        for part in (".SS kvasir generate", "\\-\\-temperature", ".SH EXIT STATUS",
                     ".SS kvasir cache plan"):
            self.assertIn(part, manual)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-k"],
                                  input=manual.encode(), capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        bash = self.tree / "usr/share/bash-completion/completions/kvasir"
        for words, expected in ((["kvasir", "gen"], "generate"),
                                (["kvasir", "generate", "--temp"], "--temperature"),
                                (["kvasir", "generate", "--overflow", "r"], "roll"),
                                (["kvasir", "cache", "pl"], "plan"),
                                (["kvasir", "cache", "plan", "--pre"], "--preset")):
            script = (f"source {bash}; COMP_WORDS=({' '.join(words)}); "
                      f"COMP_CWORD={len(words) - 1}; _kvasir; echo \"${{COMPREPLY[@]}}\"")
            self.assertEqual(run("bash", "-c", script).strip(), expected)
        zsh = self.tree / "usr/share/zsh/vendor-completions/_kvasir"
        if shutil.which("zsh"):
            run("zsh", "-n", zsh)
        self.assertTrue(zsh.read_text(encoding="utf-8").startswith("#compdef kvasir\n"))

    def test_packing_again_gives_the_same_bytes(self):
        time.sleep(1.1)  # So that a time that is not SOURCE_DATE_EPOCH's shows.
        os.utime(BUILD / "kvasir.pc")
        self.assertEqual(self.pack("second").read_bytes(), self.package.read_bytes())


if __name__ == "__main__":
    ARGS = argparse.ArgumentParser()
    ARGS.add_argument("--build", type=pathlib.Path, required=True)
    OPTIONS, REST = ARGS.parse_known_args()
    BUILD = OPTIONS.build.resolve()
    unittest.main(argv=["deb_test.py", *REST])
