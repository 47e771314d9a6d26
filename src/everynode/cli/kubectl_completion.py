"""Completion for `kubectl everynode`: kubectl runs `kubectl_complete-everynode` with the words.

It expects one completion per line, with its help after a tab, and at the end a directive; `:4`
means that file names are not offered.
"""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete

from everynode.cli.main import entry
from everynode.errors import replace_control_characters

_NO_FILES = ":4"


def main() -> None:
    """Print the completions of the last argument."""
    *words, incomplete = sys.argv[1:] or [""]
    completion = ShellComplete(entry, {}, "everynode", "_EVERYNODE_COMPLETE")
    for item in completion.get_completions(words, incomplete):
        text = f"{item.value}\t{item.help}" if item.help else str(item.value)
        click.echo(replace_control_characters(text))
    click.echo(_NO_FILES)
