"""Entry point of the `everynode` command and of `python -m everynode`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; Ctrl-C during the imports ends it without a traceback."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:  # otherwise the parent process ignores it (nohup)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from everynode.cli.main import main as run

    signal.signal(signal.SIGINT, interrupted)
    run()


if __name__ == "__main__":
    main()
