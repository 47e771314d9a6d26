"""The `everynode` command: each subcommand is imported only when it is typed."""

from __future__ import annotations

import importlib
import sys

import click

import everynode
from everynode.cli.errors import UserError

# Name -> module that holds a click command called `command`. Importing late keeps `--help` quick.
COMMANDS = {
    "demo": "everynode.cli.demo",
    "image": "everynode.cli.image",
    "install": "everynode.cli.install",
    "node": "everynode.cli.node",
    "run": "everynode.cli.run",
    "simulate": "everynode.cli.simulate",
    "up": "everynode.cli.up",
}


class LateGroup(click.Group):
    """A group whose commands live in modules that are imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed with a message, 2 wrong usage, 130 interrupted.",
)
@click.version_option(everynode.__version__, prog_name="everynode")
def entry() -> None:
    """One pod on every node of a Kubernetes cluster, rolled out safely.

    \b
    Try it:            everynode up --nodes 20      (an embedded cluster for kubectl)
    Look ahead:        everynode simulate -f agent.yaml --nodes 500 --fail 3%
    On your cluster:   everynode install && everynode run
    """


def main() -> None:
    """Run the command line; errors a user can mend are one line, never a traceback."""
    if not __debug__:
        sys.exit("everynode: do not run with python -O: the assertions are part of the product")
    try:
        entry.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except UserError as error:
        click.echo(f"everynode: {error}", err=True)
        sys.exit(1)
