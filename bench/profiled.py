"""Runs everynode under a profiler that counts CPU time only.

python -m bench.profiled FILE run --native …        then: python -m pstats FILE
"""

from __future__ import annotations

import cProfile
import sys
import time

from everynode.cli.main import main


def run() -> None:
    file = sys.argv.pop(1)
    profiler = cProfile.Profile(time.thread_time)
    profiler.enable()
    try:
        main()
    finally:
        profiler.disable()
        profiler.dump_stats(file)


if __name__ == "__main__":
    run()
