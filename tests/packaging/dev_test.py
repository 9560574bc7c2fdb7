#!/usr/bin/env python3
"""Runs a copy of ./dev among stand-ins for apt-get, cmake, ninja … that only note how they were
called: what it installs, when it configures, and what it passes on."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'

# Each stand-in appends its name and arguments to $CALLS.
NOTE = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
STAND_INS = {
    "apt-get": NOTE + 'if [[ $1 == "$FAIL_APT" ]]; then echo no network; exit 100; fi\n',
    "sudo": NOTE + 'exec "$@"\n',
    "id": "#!/bin/bash\necho \"${FAKE_UID:-0}\"\n",
    # Installed: everything but the names in $MISSING.
    "dpkg-query": "#!/bin/bash\n"
                  'if [[ " $MISSING " == *" ${!#} "* ]]; then exit 1; fi\necho installed\n',
    "cmake": NOTE + "mkdir -p build/release && : >build/release/build.ninja\n"
                    'echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt\n',
    "ninja": NOTE + 'echo "[1/2] Re-running CMake..."\necho "[1/4] CXX a.o"\n'
             'echo "[3/4] CXX b.o"\nif [[ $FAIL_NINJA ]]; then echo "a.cc: no"; exit 1; fi\n'
                    "printf '#!/bin/bash\\necho \"lesson $*\"\\n' >build/release/kvasir\n"
                    "chmod +x build/release/kvasir\n",
    "ctest": NOTE + 'echo "runner\'s last line"\nexit "${CTEST_STATUS:-0}"\n',
}


class DevTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.home = pathlib.Path(self.folder.name).resolve()
        shutil.copy2(ROOT / "dev", self.home / "dev")
        (self.home / ".ci").mkdir()
        shutil.copy2(ROOT / ".ci" / "run", self.home / ".ci" / "run")
        (self.home / "CMakePresets.json").write_text("{}\n")
        os.utime(self.home / "CMakePresets.json", (0, 0))
        self.system(DEBIAN)
        self.tools = self.home / "bin"
        self.tools.mkdir()
        for name, text in STAND_INS.items():
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)

    def system(self, text):
        (self.home / "os-release").write_text(text)

    def dev(self, *arguments, script="dev", **settings):
        """Exit status, stdout, stderr, and the calls of the stand-ins."""
        calls = self.home / "calls"
        calls.write_text("")
        environment = {"PATH": f"{self.tools}:/usr/bin:/bin", "CALLS": str(calls), "MISSING": "",
                       "KVASIR_OS_RELEASE": str(self.home / "os-release"), **settings}
        done = subprocess.run([str(self.home / script), *arguments], cwd="/", text=True,
                              capture_output=True, env=environment, check=False,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr, calls.read_text().splitlines()

    def test_another_system_prints_the_packages_and_stops(self):
        for system in ('ID=ubuntu\nVERSION_ID="22.04"\n', 'ID=debian\nVERSION_ID="11"\n',
                       'ID=fedora\nID_LIKE=debian\nVERSION_ID="12"\n', ""):
            self.system(system)
            for command in ("demo", "build", "test", "package", "bench", "lint", "nightly"):
                status, out, _, calls = self.dev(command)
                self.assertEqual(status, 1, (system, command))
                self.assertEqual(calls, [], (system, command))
                for package in ("g++", "cmake", "libhwy-dev", "libboost1.81-dev", "libgtest-dev"):
                    self.assertIn(f"  {package}\n", out, (system, command))
        self.assertIn("  libclang-rt-14-dev\n", out)

    def test_missing_os_release_is_another_system(self):
        status, out, _, _ = self.dev("build", KVASIR_OS_RELEASE="/nonexistent")
        self.assertEqual(status, 1)
        self.assertIn("  ninja-build\n", out)

    def test_installs_only_what_is_missing(self):
        status, _, err, calls = self.dev("build", MISSING="libhwy-dev libfmt-dev clang")
        self.assertEqual(status, 0, err)
        self.assertEqual(calls[:2], ["apt-get update", "apt-get install -y "
                                     "--no-install-recommends libhwy-dev libfmt-dev"])
        self.assertIn("installing libhwy-dev libfmt-dev", err)

    def test_installs_nothing_when_all_is_there(self):
        status, _, err, calls = self.dev("build")
        self.assertEqual(status, 0, err)
        self.assertEqual([c for c in calls if c.startswith(("apt-get", "sudo"))], [])

    def test_uses_sudo_when_not_root(self):
        _, _, _, calls = self.dev("build", MISSING="cmake", FAKE_UID="1000")
        self.assertEqual(calls[0], "sudo apt-get update")
        self.assertEqual(calls[2], "sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y "
                                   "--no-install-recommends cmake")

    def test_says_so_without_root_and_sudo(self):
        (self.tools / "sudo").unlink()
        if shutil.which("sudo", path="/usr/bin:/bin"):
            self.skipTest("this system has sudo")
        status, _, err, calls = self.dev("build", MISSING="cmake", FAKE_UID="1000")
        self.assertEqual((status, calls), (1, []))
        self.assertIn("neither root nor sudo", err)

    def test_warns_before_boost_is_replaced(self):
        note = "libboost1.81-dev replaces libboost1.74-dev"
        _, _, err, _ = self.dev("build", MISSING="libboost1.81-dev")
        self.assertIn(note, err)
        _, _, err, _ = self.dev("build", MISSING="libboost1.81-dev libboost1.74-dev")
        self.assertNotIn(note, err)

    def test_failed_installation_shows_why(self):
        for step in ("update", "install"):
            status, _, err, calls = self.dev("build", MISSING="cmake", FAIL_APT=step)
            self.assertEqual(status, 1)
            self.assertIn("no network", err)
            self.assertFalse([c for c in calls if c.startswith("cmake")])

    def test_second_run_does_not_configure_again(self):
        self.assertIn("cmake --preset release", self.dev("build")[3])
        self.assertEqual(self.dev("build")[3], ["ninja -C build/release kvasir"])

    def test_configures_again_after_a_move_or_new_presets(self):
        self.dev("build")
        cache = self.home / "build/release/CMakeCache.txt"
        cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        self.assertIn("cmake --preset release --fresh", self.dev("build")[3])
        os.utime(self.home / "CMakePresets.json")
        os.utime(self.home / "build/release/build.ninja", (1, 1))
        self.assertIn("cmake --preset release", self.dev("build")[3])

    def test_failed_build_shows_its_output(self):
        status, _, err, _ = self.dev("build", FAIL_NINJA="1")
        self.assertEqual(status, 1)
        self.assertIn("a.cc: no", err)

    def test_says_how_far_the_build_is(self):
        err = self.dev("build")[2]
        progress = [line for line in err.splitlines() if line.startswith("dev: built")]
        self.assertEqual(progress, ["dev: built 25 %", "dev: built 75 %"])

    def test_demo_builds_only_the_program_and_runs_it(self):
        status, out, err, calls = self.dev("demo", "--lang", "zh")
        self.assertEqual((status, out), (0, "lesson demo --lang zh\n"), err)
        self.assertIn("ninja -C build/release kvasir", calls)

    def test_test_ends_with_the_runners_words_and_status(self):
        for script, arguments in (("dev", ["test", "-R", "kvcache"]), (".ci/run", [])):
            for wanted in ("0", "8"):
                status, out, _, calls = self.dev(*arguments, script=script, CTEST_STATUS=wanted)
                self.assertEqual(status, int(wanted))
                self.assertEqual(out, "runner's last line\n")
                self.assertIn("ninja -C build/release", calls)
                self.assertRegex(calls[-1], r"^ctest --test-dir build/release --no-tests=error "
                                            r"--output-on-failure -j \d+")
        self.assertTrue(self.dev("test", "-R", "kvcache")[3][-1].endswith(" -R kvcache"))

    def test_help_and_unknown_commands(self):
        status, out, _, calls = self.dev("help")
        self.assertEqual((status, calls), (0, []))
        for command in ("demo", "build", "test", "package", "bench", "lint", "nightly"):
            self.assertTrue(re.search(rf"^  {command}\b", out, re.MULTILINE), command)
        status, out, err, calls = self.dev("frobnicate")
        self.assertEqual((status, out, calls), (2, "", []))
        self.assertIn("unknown command frobnicate", err)


if __name__ == "__main__":
    unittest.main()
