#!/usr/bin/env python3
"""Makes kvasir.1, kvasir.bash and _kvasir (for zsh) from what the program's --help says.

usage: program_pages.py --program KVASIR --out FOLDER

So the manual and the completions name what the program has, and nothing else.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^(\w[\w ]*):$")
ENTRY = re.compile(r"^  (\S.*?)(?:\s{2,}(\S.*))?$")
CONTINUED = re.compile(r"^\s{8,}(\S.*)$")


@dataclasses.dataclass
class Entry:
    """-m,--model FILE: names [-m, --model], value FILE; of a command or argument its name alone."""
    names: list[str]
    value: str
    text: str

    def words(self):
        """The values it can have, if they are a few: a|b."""
        found = re.fullmatch(r"\w+(?:\|\w+)+", self.value)
        return self.value.split("|") if found else []


@dataclasses.dataclass
class Command:
    path: list[str]  # [] is the program itself.
    summary: str = ""
    usage: str = ""
    options: list[Entry] = dataclasses.field(default_factory=list)
    positionals: list[Entry] = dataclasses.field(default_factory=list)
    subcommands: list[Entry] = dataclasses.field(default_factory=list)
    example: list[str] = dataclasses.field(default_factory=list)


def make_entry(head, text):
    names, _, value = head.partition(" ")
    value = value.split(":{")[0]  # CLI11 says a|b once more.
    return Entry(names.split(","), value.replace(" REQUIRED", "").removesuffix("REQUIRED").strip(),
                 text or "")


def parse(path, text):
    command = Command(path)
    sections = {"Options": command.options, "Positionals": command.positionals,
                "Subcommands": command.subcommands}
    entries, last = None, None
    for line in text.splitlines():
        head = SECTION.match(line)
        if line.startswith("Usage: "):
            command.usage = line[len("Usage: "):]
        elif head and head[1] in sections:
            entries, last = sections[head[1]], None
        elif line.endswith("Example:"):
            entries, last = None, "example"
        elif last == "example" and line.strip():
            command.example.append(line.strip())
        elif entries is None:
            if line.strip() and not command.usage:
                command.summary = f"{command.summary} {line.strip()}".strip()
        elif last and (match := CONTINUED.match(line)):
            last.text = f"{last.text} {match[1]}".strip()
        elif match := ENTRY.match(line):
            last = make_entry(match[1], match[2])
            entries.append(last)
    return command


def read_program(program):
    """The program, its commands and theirs, in the order of --help."""
    found, open_paths = [], [[]]
    while open_paths:
        path = open_paths.pop(0)
        said = subprocess.run([program, *path, "--help"], capture_output=True, text=True,
                              check=True).stdout
        command = parse(path, said)
        found.append(command)
        open_paths[:0] = [path + entry.names for entry in command.subcommands]
    return found


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def roff_entries(title, entries):
    if not entries:
        return []
    lines = [f".SS {title}"] if title else []
    for entry in entries:
        head = ", ".join(f"\\fB{roff(name)}\\fR" for name in entry.names)
        value = f" \\fI{roff(entry.value)}\\fR" if entry.value else ""
        lines += [".TP", head + value, roff(entry.text)]
    return lines


def manual(commands, version):
    top = commands[0]
    lines = [f'.TH KVASIR 1 "" "kvasir {version}" "User Commands"', ".ad l", ".nh", ".SH NAME",
             "kvasir \\- trains, runs and serves small language models", ".SH SYNOPSIS",
             "\\fBkvasir\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]", ".SH DESCRIPTION",
             roff(top.summary), *roff_entries("", top.options), ".SH COMMANDS"]
    for command in commands[1:]:
        if command.subcommands:
            continue
        lines += [f".SS kvasir {roff(' '.join(command.path))}", roff(command.summary), ".PP",
                  f"\\fB{roff(command.usage)}\\fR",
                  *roff_entries("", command.positionals + command.options)]
        for example in command.example:
            lines += [".PP", "Example:", ".PP", ".nf", roff(example), ".fi"]
    lines += [".SH EXIT STATUS", "0: done. 1: it could not. 2: wrong usage.", ".SH ENVIRONMENT",
              ".TP", "\\fBKVASIR_MODEL\\fR", "The model file where none is named."]
    return "\n".join(lines) + "\n"


def shell_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash(commands):
    lines = ["# bash completion of kvasir; made from --help.", "_kvasir() {",
             "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}",
             "  local path='' word words='' values=''",
             "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
             "    case \"$path $word\" in"]
    inner = [" " + " ".join(c.path) for c in commands[1:]]
    lines += [f"      {shell_quote(path)}) path={shell_quote(path)} ;;" for path in inner]
    lines += ["    esac", "  done", "  case $path in"]
    for command in commands:
        path = " " + " ".join(command.path) if command.path else ""
        names = [name for entry in command.options for name in entry.names]
        words = " ".join([entry.names[0] for entry in command.subcommands] + names)
        lines.append(f"    {shell_quote(path)})")
        lines.append(f"      words={shell_quote(words)}")
        choices = [e for e in command.options if e.words()]
        if choices:
            lines.append("      case $previous in")
            lines += [f"        {'|'.join(e.names)}) values={shell_quote(' '.join(e.words()))} ;;"
                      for e in choices]
            lines.append("      esac")
        lines.append("      ;;")
    lines += ["  esac",
              "  if [[ -n $values ]]; then words=$values; "
              "elif [[ -n $path && $current != -* && $words == -* ]]; then words=''; fi",
              "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")", "}",
              "complete -o default -F _kvasir kvasir"]
    return "\n".join(lines) + "\n"


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_option(entry):
    text = f"[{zsh_text(entry.text)}]"
    if entry.value:
        words = entry.words()
        action = f"({' '.join(words)})" if words else "_files"
        text += f":{zsh_text(entry.value)}:{action}"
    if len(entry.names) == 1:
        return shell_quote(entry.names[0] + text)
    return (shell_quote(f"({' '.join(entry.names)})") + "{" + ",".join(entry.names) + "}"
            + shell_quote(text))


def zsh(commands):
    lines = ["#compdef kvasir", "# zsh completion of kvasir; made from --help.", ""]
    for command in commands:
        name = "_".join(["_kvasir", *command.path])
        specs = [zsh_option(entry) for entry in command.options]
        lines.append(f"{name}() {{")
        if command.subcommands:
            lines.append("  local -a commands=(")
            lines += ["    " + shell_quote(f"{e.names[0]}:{zsh_text(e.text)}")
                      for e in command.subcommands]
            lines += ["  )", "  _arguments -C \\"]
            lines += [f"    {spec} \\" for spec in specs]
            lines += ["    '1:command:{_describe command commands}' '*::argument:->rest'",
                      f"  [[ $state == rest ]] && (( $+functions[{name}_$words[1]] )) && "
                      f"{name}_$words[1]"]
        else:
            lines.append("  _arguments \\")
            lines += [f"    {spec} \\" for spec in specs]
            lines.append("    '*:argument:_files'")
        lines += ["}", ""]
    lines.append('_kvasir "$@"')
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="makes the manual and the completions")
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    commands = read_program(os.path.abspath(options.program))
    said = subprocess.run([os.path.abspath(options.program), "--version"], capture_output=True,
                          text=True, check=True).stdout
    version = re.search(r"kvasir ([\d.]+)", said)[1]
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in (("kvasir.1", manual(commands, version)), ("kvasir.bash", bash(commands)),
                       ("_kvasir", zsh(commands))):
        (options.out / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
