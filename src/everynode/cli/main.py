"""The `everynode` command group: each subcommand is imported only when it is used."""

from __future__ import annotations

import contextlib
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
from everynode.cli.access.option_order import CommandGroup
from everynode.errors import UserError, is_output_error, replace_control_characters


class LazyCommand(NamedTuple):
    """A command that is imported on first use; `line` is its entry in `everynode --help`."""

    module: str  # holds a click command called `command`
    line: str


# Grouped as in --help. The lines are here so that `--help` imports no command.
COMMANDS: Final = {
    "Try it, without a cluster": {
        "demo": LazyCommand("everynode.cli.demo", "Watch a canary, a bad version and an undo."),
        "up": LazyCommand("everynode.cli.up", "Start a cluster of simulated nodes for kubectl."),
        "node": LazyCommand(
            "everynode.cli.node", "Stop, slow down, drain, add or remove simulated nodes."
        ),
        "image": LazyCommand(
            "everynode.cli.image", "Break or mend an image of a simulated cluster."
        ),
    },
    "Look at rollouts": {
        "get": LazyCommand("everynode.cli.get", "List DaemonSets and how their rollouts stand."),
        "status": LazyCommand("everynode.cli.status", "Draw one rollout; --watch follows it."),
        "nodes": LazyCommand("everynode.cli.nodes", "List the nodes of a rollout, one per line."),
        "why": LazyCommand("everynode.cli.why", "Explain what a node waits for, and what helps."),
        "history": LazyCommand("everynode.cli.history", "List revisions, or compare two."),
        "dashboard": LazyCommand("everynode.cli.dashboard", "Show all rollouts in a browser."),
        "logs": LazyCommand("everynode.cli.logs", "Print the logs of the pod of a node."),
        "exec": LazyCommand("everynode.cli.exec", "Run a command in the pod of a node."),
    },
    "Change rollouts": {
        "set": LazyCommand("everynode.cli.set", "Give containers new images: set image."),
        "restart": LazyCommand("everynode.cli.restart", "Restart every pod, within the budget."),
        "pause": LazyCommand("everynode.cli.pause", "Stop an update where it is."),
        "resume": LazyCommand("everynode.cli.resume", "Let a paused update go on."),
        "partition": LazyCommand(
            "everynode.cli.partition", "Hold back a number of nodes, or percent."
        ),
        "undo": LazyCommand("everynode.cli.undo", "Go back to an earlier revision."),
    },
    "Look ahead": {
        "lint": LazyCommand("everynode.cli.lint", "Check manifests for mistakes and risks."),
        "plan": LazyCommand("everynode.cli.plan", "See how a change would be rolled out here."),
        "simulate": LazyCommand("everynode.cli.simulate", "See a rollout before it happens."),
    },
    "On your own cluster": {
        "doctor": LazyCommand("everynode.cli.doctor", "Find what in a cluster is in the way."),
        "install": LazyCommand(
            "everynode.cli.install", "Install the CRD, the permissions and the controller."
        ),
        "run": LazyCommand("everynode.cli.run", "Run the controller until Ctrl-C or SIGTERM."),
        "migrate": LazyCommand(
            "everynode.cli.migrate", "Change the kind of a DaemonSet and keep its pods."
        ),
        "convert": LazyCommand(
            "everynode.cli.convert", "Convert a DaemonSet to another API version."
        ),
    },
}


def all_commands() -> list[str]:
    """Return the names of all commands, in the order of the help."""
    return [name for section in COMMANDS.values() for name in section]


class LazyGroup(CommandGroup):
    """A click group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in the order of the help."""
        return all_commands()

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
        """Find the command; for an unknown name suggest the nearest one."""
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
    cls=LazyGroup,
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


def _program_name() -> str:
    """How the program was called: `everynode`, also for python -m, or `kubectl everynode`."""
    called = os.path.basename(sys.argv[0]) if sys.argv else ""
    return "kubectl everynode" if called.startswith("kubectl-everynode") else "everynode"


def main() -> None:
    """Run the command line; an error that a user can fix is one line, not a traceback."""
    if not __debug__:
        sys.exit("everynode: do not run with python -O: the assertions are part of the product")
    # A parent process may have closed these streams; then the output is dropped.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # some terminals cannot encode the marks
    if os.getpid() == 1:
        # The kernel ignores SIGTERM for process 1 of a container unless there is a handler.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        entry.main(prog_name=_program_name(), standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # no arguments: print the help on stdout
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _end_at_once(130)
    except UserError as error:
        click.echo(f"everynode: {replace_control_characters(str(error))}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if not is_output_error(error):
            raise
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` has finished
            click.echo(f"everynode: cannot write: {error.strerror}", err=True)
        # Python flushes stdout at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _end_at_once(code: int) -> None:
    """End the process without collecting what is left of it.

    The coroutines of a simulated controller that was interrupted would print tracebacks.
    """
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
