"""Writes what a system knows of the command besides its help: man.py FOLDER makes share/man/man1 and the completions of
shells in it. The pages say what `--help` says, verb by verb, since they are made of the same.

A wheel takes FOLDER in as its data (maturin looks for `tcpknee._core.data/data`), so that pip puts all of it below the
environment, where `man` and shells look if its bin/ is in the path.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click

from tcpknee.cli.app import app
from tcpknee.cli.help import below

COMPLETIONS = {
    "bash": "share/bash-completion/completions/knee",
    "zsh": "share/zsh/site-functions/_knee",
    "fish": "share/fish/vendor_completions.d/knee.fish",
}


def page(command: click.Command, context: click.Context) -> str:
    """A page of section 1, as roff."""
    name = context.command_path
    parts = [f'.TH "{name.replace(" ", "-").upper()}" 1 "" "tcpknee {metadata.version("tcpknee")}"']
    parts += [".SH NAME", f"{escaped(name.replace(' ', '-'))} \\- {escaped(command.get_short_help_str(200))}"]
    parts += [".SH SYNOPSIS", f".B {escaped(name)}", escaped(" ".join(command.collect_usage_pieces(context)))]
    parts += [".SH DESCRIPTION", *paragraphs(inspect.cleandoc(command.help or ""))]
    records = [one for param in command.get_params(context) if (one := param.get_help_record(context))]
    records = [(options, help_) for options, help_ in records if help_]
    if records:
        parts.append(".SH OPTIONS")
        for options, help_ in records:
            parts += [".TP", f".B {escaped(options)}", escaped(" ".join(help_.split()))]
    if isinstance(command, click.Group):
        parts.append(".SH COMMANDS")
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            parts += [".TP", f".B {escaped(f'{name} {verb}')}", escaped(found.get_short_help_str(200))]
    if context.parent is not None:
        parts += [".SH SEE ALSO", f".BR {escaped(context.parent.command_path.replace(' ', '-'))} (1)"]
    return "\n".join(parts) + "\n"


def paragraphs(help_: str) -> Iterator[str]:
    """Help as roff: a paragraph with click's mark keeps its lines."""
    for text in re.split(r"\n\s*\n", help_.strip()):
        yield ".PP"
        if text.startswith("\b"):
            yield from (".nf", *map(escaped, text.removeprefix("\b").strip("\n").splitlines()), ".fi")
        else:
            yield escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """A line of text that roff takes for nothing else."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> int:
    folder = Path(sys.argv[1])
    pages = folder / "share" / "man" / "man1"
    pages.mkdir(parents=True, exist_ok=True)
    for command, context in below(app, click.Context(app, info_name="knee")):
        file = pages / f"{context.command_path.replace(' ', '-')}.1"
        file.write_text(page(command, context), encoding="utf-8")
    for shell, name in COMPLETIONS.items():
        knee = Path(sys.executable).with_name("knee")
        script = subprocess.run([knee, "completion", shell], capture_output=True, text=True, check=True).stdout
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(script, encoding="utf-8")
    print(f"wrote {len(list(pages.iterdir()))} pages and {len(COMPLETIONS)} completions below {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
