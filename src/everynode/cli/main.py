"""The `everynode` command: each subcommand is imported only when it is typed."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import signal
import sys
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem

import everynode
from everynode.cli.errors import UserError, is_output_lost


class Late(NamedTuple):
    """A command that is imported when it is typed; until then its help is this line."""

    module: str  # holds a click command called `command`
    line: str


# By what people want. The lines stand here so that `--help` need not import everything.
COMMANDS: Final = {
    "Try it, without a cluster": {
        "demo": Late("everynode.cli.demo", "Watch a canary rollout; ends by itself."),
        "up": Late("everynode.cli.up", "Start a cluster of simulated nodes for kubectl."),
        "node": Late("everynode.cli.node", "Stop, start or slow down a simulated node."),
        "image": Late("everynode.cli.image", "Break or mend an image of a simulated cluster."),
    },
    "Look ahead": {
        "simulate": Late("everynode.cli.simulate", "See a rollout before it happens."),
    },
    "On your own cluster": {
        "install": Late("everynode.cli.install", "Bring the CRD and the permissions."),
        "run": Late("everynode.cli.run", "Run the controller until Ctrl-C or SIGTERM."),
        "convert": Late("everynode.cli.convert", "Say a DaemonSet in another API version."),
    },
}


class LateGroup(click.Group):
    """A group whose commands live in modules that are imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in the order of the help."""
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        for section in COMMANDS.values():
            if cmd_name in section:
                command: click.Command = importlib.import_module(section[cmd_name].module).command
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed, or say which one may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            hint = f"{error.message} Did you mean {near[0]!r}?"
            raise click.UsageError(hint, ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, or an option of our own."""
        names = [
            CompletionItem(name, help=late.line)
            for section in COMMANDS.values()
            for name, late in section.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, late.line) for name, late in section.items()])


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Every command explains itself: everynode up --help
Completion for bash: eval "$(_EVERYNODE_COMPLETE=bash_source everynode)" (also zsh_, fish_)
Exit codes: 0 done, 1 failed with a message, 2 wrong usage, 130 interrupted
""",
)
@click.version_option(everynode.__version__, prog_name="everynode")
def entry() -> None:
    """One pod on every node of a Kubernetes cluster, rolled out safely."""


def main() -> None:
    """Run the command line; errors a user can mend are one line, never a traceback."""
    if not __debug__:
        sys.exit("everynode: do not run with python -O: the assertions are part of the product")
    # Whoever closes them does not want to hear anything.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has every sign
    if os.getpid() == 1:
        # To the first process of a container a signal that nobody handles means nothing.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        entry.main(prog_name="everynode", standalone_mode=False)  # however it was started
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # asked for, in a way
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except UserError as error:
        click.echo(f"everynode: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if not is_output_lost(error):
            raise
        if not isinstance(error, BrokenPipeError):  # whoever read that has read enough
            click.echo(f"everynode: cannot write: {error.strerror}", err=True)
        # Python must not try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
