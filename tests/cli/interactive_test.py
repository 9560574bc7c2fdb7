#!/usr/bin/env python3
"""generate -i: turns, settings, what is shown of them, and a person at a terminal."""

import os
import pty
import re
import select
import subprocess
import time
import unittest

import program
from program import CliTest


def with_settings(flags):
    """These flags, and of what the tests set as a rule what they do not."""
    settings = {"-n": 5, "--seed": 7, "--threads": 1}
    return [word for name, value in settings.items() if name not in flags
            for word in (name, value)] + list(flags)


class InteractiveTest(CliTest):
    def turns(self, typed, *flags):
        return self.kvasir("generate", "-i", *with_settings(flags), typed=typed)

    def more(self, text, *flags):
        return self.kvasir("generate", "-p", text, *with_settings(flags)).text[:-1]

    def test_settings_are_the_flags_of_that_name(self):
        plain = self.more("春风")
        stop = plain[1]
        cases = (("/temperature 0", ("--temperature", 0)), ("/top-k 1", ("--top-k", 1)),
                 ("/seed 8", ("--seed", 8)), ("/n 9", ("-n", 9)), ("/max-tokens 2", ("-n", 2)),
                 (f"/stop {stop}", ("--stop", stop)), (f"/ban {stop}", ("--ban", stop)),
                 ("/regex \\d{3}", ("--regex", "\\d{3}")),
                 ("/choice 花\n/choice 花开", ("--choice", "花", "--choice", "花开")))
        for typed, flags in cases:
            with self.subTest(typed):
                run = self.turns(f"{typed}\n春风\n")
                self.assertEqual((run.text[:-1], run.err), (self.more("春风", *flags), ""))

    def test_settings_go_back(self):
        plain = self.more("春风")
        run = self.turns("/temperature 0\n/stop 花\n/settings\n/temperature\n/settings\n/reset\n"
                         "/settings\n春风\n")
        self.assertEqual(run.err, "/temperature 0\n/stop 花\n/stop 花\n")
        self.assertEqual(run.text, plain + "\n")
        # What the program was called with is where they go back to.
        greedy = self.more("春风", "--temperature", 0)
        run = self.turns("/temperature 1.5\n/temperature\n春风\n", "--temperature", 0)
        self.assertEqual(run.text, greedy + "\n")
        # A switch turns on, and off again.
        run = self.turns("/ignore-eos\n/settings\n/ignore-eos\n/settings\n")
        self.assertEqual(run.err, "/ignore-eos\n")

    def test_undo_takes_back_a_turn_and_a_new_start(self):
        more = self.more("春风")
        other = self.more("春风" + more + "花")
        run = self.turns("春风\n花\n/undo\n/text\n/new\n/undo\n/text\n/undo\n/text\n/undo\n")
        shown = (more, other, "春风" + more, "春风" + more, "")
        self.assertEqual(run.text, "".join(text + "\n" for text in shown))
        self.assertEqual(run.err, "kvasir: error: there is no turn to take back\n")

    def test_the_last_tokens_probabilities_are_those_it_was_drawn_from(self):
        run = self.turns("春风\n/probs 4\n", "-n", 1)
        token, *table = run.text.splitlines()
        shown = [re.fullmatch(r"([→ ]) (\S+) +([\d.]+) % +id (\d+)", line) for line in table]
        top = self.kvasir("next", "春风", "-k", 4, "--json").json["results"][0]["top"]
        self.assertEqual([int(m[4]) for m in shown[:4]], [t["id"] for t in top])
        for match, expected in zip(shown, top):
            self.assertEqual(match[3], f"{100 * expected['prob']:.2f}")
        marked = [m[2] for m in shown if m[1] == "→"]
        self.assertEqual(marked, [token])
        self.assertIn(len(shown), (4, 5))
        run = self.turns("/probs\n春风\n/probs 0\n/probs 1000000\n")
        self.assertRegex(run.err, r"nothing has been written.*\n.*/probs is '0'.*\n.*1000000.*\n\Z")

    def test_what_is_no_command_is_told_in_one_line_and_changes_nothing(self):
        more = self.more("春风")
        for typed, message in (("/nonsense", "no /nonsense"), ("/temperature x", "x"),
                               ("/temperature -1", "-1"), ("/top-p 7", "7"), ("/undo 3", "/undo"),
                               ("/ignore-eos yes", "no value"), ("/count 2", "one text"),
                               ("/overflow around", "around"), ("/", "no /"), ("/regex (", "(")):
            with self.subTest(typed):
                run = self.turns(f"{typed}\n/reset\n春风\n") if "regex" not in typed else \
                    self.turns(f"{typed}\n春风\n/reset\n春风\n")
                self.assertEqual(run.text, more + "\n")
                self.assertRegex(run.err, r"\Akvasir: error: [^\n]*" + re.escape(message) +
                                 r"[^\n]*\n(hint: [^\n]*\n)?\Z")

    def test_help_lists_every_setting(self):
        run = self.turns("/help\n")
        self.assertNotRegex(run.err, r"/count|\{")
        for name in ("/undo", "/probs", "/temperature N", "/top-k", "/stop TEXT", "/regex",
                     "/seed", "/quit"):
            self.assertIn(f"  {name}", run.err)
        self.assertEqual(run.text, "")

    def test_two_slashes_are_text(self):
        run = self.turns("//\n/text\n")
        self.assertEqual(run.text, self.more("/") + "\n/" + self.more("/") + "\n")


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, command, environment, out=None):
        self.master, end = pty.openpty()
        self.process = subprocess.Popen(command, stdin=end, stdout=out or end, stderr=end,
                                        env=environment, start_new_session=True,
                                        preexec_fn=lambda: os.close(self.master))
        self.seen = b""
        self.end = end

    def type(self, keys):
        os.write(self.master, keys)

    def wait_for(self, what, seconds=30):
        """What has been seen since the last call, up to and with `what`."""
        until = time.monotonic() + seconds
        while what not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise AssertionError(f"{what!r} did not come, but at last {self.seen[-300:]!r}")
            self.seen += os.read(self.master, 65536)
        part, self.seen = self.seen.split(what, 1)
        return part + what

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.end)


class TerminalTest(CliTest):
    def open(self, *flags, out=None):
        environment = {**self.environment(), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        command = [program.PROGRAM, "generate", "-i", *map(str, with_settings(flags))]
        terminal = Terminal(command, environment, out)
        self.addCleanup(terminal.close)
        terminal.wait_for(b"> ")
        return terminal

    def test_a_person_is_greeted_and_the_end_of_input_ends(self):
        terminal = self.open()
        terminal.type(b"\x04")
        self.assertEqual(terminal.process.wait(timeout=60), 0)

    def test_interrupting_ends_the_turn_and_keeps_what_it_wrote(self):
        terminal = self.open("-n", 1_000_000, "--overflow", "roll")
        terminal.type("春风\n".encode())
        terminal.wait_for("春风".encode())
        time.sleep(0.3)
        os.killpg(terminal.process.pid, 2)
        terminal.wait_for(b"> ")
        terminal.type(b"/n 1\n/probs 1\n")
        terminal.wait_for("→".encode())
        terminal.type(b"/quit\n")
        self.assertEqual(terminal.process.wait(timeout=60), 0)

    def test_the_arrow_keys_walk_the_history(self):
        linked = subprocess.run(["ldd", program.PROGRAM], capture_output=True, text=True,
                                check=False).stdout
        if "libedit" not in linked:
            self.skipTest("built without libedit")
        more = self.kvasir("generate", "-p", "春风", *with_settings(())).text
        with open(self.path("out"), "w+", encoding="utf-8") as out:
            terminal = self.open(out=out)
            # Two lines back from the third; then back again, with slashes put before it.
            for keys in ("春风", "/new", "\x1b[A\x1b[A", "/new", "\x1b[A\x1b[A\x01//\x05"):
                terminal.type(keys.encode() + b"\r")
                terminal.wait_for(b"> ")
            terminal.type(b"/text\r/quit\r")
            self.assertEqual(terminal.process.wait(timeout=60), 0)
            out.seek(0)
            shown = out.read()
        other = self.kvasir("generate", "-p", "/春风", *with_settings(())).text
        self.assertEqual(shown, more + more + other + "/春风" + other)


if __name__ == "__main__":
    program.main()
