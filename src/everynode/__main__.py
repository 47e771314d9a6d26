"""How `everynode` starts, installed as a command or as `python -m everynode`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback even before it is imported."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:  # else somebody ignores it for us
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from everynode.cli.main import main as run

    signal.signal(signal.SIGINT, interrupted)
    run()


if __name__ == "__main__":
    main()
