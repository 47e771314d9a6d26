"""Mutation runner: plants every mutant and checks that the simulator catches it.

    python -m mutants [NAME ...] [--jobs 2] [--seeds 300] [--seconds 240] [--write] [--afresh]

A mutant is planted in a copy of the sources; the working tree is never touched. A plan that breaks
a promise without any mutant proves nothing: it is reported, and the search continues with the next.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from mutants.hunt import Found
from mutants.mutant import ROOT, Mutant, read_mutants
from mutants.result import read_result, write_result

_decode: Final = msgspec.json.Decoder(Found).decode
_KILLED: Final = Found("all of them", "L4", "killed: it went on and on")


class MutantRunner:
    """Runs mutants in copies of one snapshot of the sources."""

    def __init__(self, folder: Path, *, seeds: int, seconds: int, known: dict[str, str]) -> None:
        self._folder = folder
        self._seeds, self._seconds = seeds, seconds
        self._known = known
        self._sound = folder / "sound"
        shutil.copytree(ROOT / "src", self._sound)
        shutil.copytree(ROOT / "mutants", folder / "program" / "mutants")
        shutil.copytree(ROOT / "tests" / "sim", folder / "program" / "tests" / "sim")
        self._verdicts: dict[str, str] = {}  # by plan: the promise it breaks without any mutant
        self._one_at_a_time = threading.Lock()

    @property
    def broken_without_mutant(self) -> dict[str, str]:
        """The plans that break a promise without any mutant, with that promise."""
        return {plan: promise for plan, promise in sorted(self._verdicts.items()) if promise}

    def hunt(self, mutant: Mutant) -> Found:
        """Plant a mutant and search for a promise that it breaks."""
        sources = self._folder / mutant.name
        shutil.copytree(self._sound, sources)
        try:
            mutant.plant(sources)
            first = self._known.get(mutant.name, "")
            options = ["--seeds", str(self._seeds), "--seconds", str(self._seconds)]
            options += ["--first", first] if first else []
            while True:
                found = self._run(sources, *options, "--skip", *self.broken_without_mutant)
                if not found.plan or found is _KILLED or not self._breaks(found.plan):
                    return found
        finally:
            shutil.rmtree(sources)

    def _breaks(self, plan: str) -> bool:
        """Whether a plan breaks a promise without any mutant."""
        with self._one_at_a_time:
            if plan not in self._verdicts:
                self._verdicts[plan] = self._run(self._sound, "--only", plan).promise
            return bool(self._verdicts[plan])

    def _run(self, sources: Path, *options: str) -> Found:
        path = os.pathsep.join((str(sources), str(self._folder / "program")))
        done = subprocess.run(
            [sys.executable, "-m", "mutants.hunt", *options],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode < 0:
            return _KILLED
        if done.returncode:
            return Found("its import", "S0", done.stderr.strip().splitlines()[-1])
        return _decode(done.stdout)


def _print_result(mutant: Mutant, found: Found) -> None:
    if found.plan:
        what = f"{found.plan}: {found.promise} {found.message[:150]}"
    else:
        what = f"SURVIVED {found.played} plans; should break {mutant.promise}"
    print(f"{mutant.name:40} {found.seconds:6.1f} s  {what}", flush=True)


def main() -> None:
    """Run the named mutants, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=240, help="of CPU for one mutant")
    parser.add_argument("--write", action="store_true", help="write RESULT.md anew")
    parser.add_argument(
        "--afresh", action="store_true", help="forget which plan caught which mutant before"
    )
    options = parser.parse_args()
    chosen = [each for each in read_mutants() if not options.names or each.name in options.names]
    known = {} if options.afresh else read_result()

    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        hunters = MutantRunner(
            Path(folder), seeds=options.seeds, seconds=options.seconds, known=known
        )

        def work(mutant: Mutant) -> tuple[Mutant, Found]:
            found = hunters.hunt(mutant)
            _print_result(mutant, found)
            return mutant, found

        results = list(pool.map(work, chosen))

    for plan, promise in hunters.broken_without_mutant.items():
        print(f"{plan} breaks {promise} without any bug")
    caught = sum(bool(found.plan) for _, found in results)
    print(f"{caught} of {len(results)} caught")
    if options.write:
        write_result(results)
    sys.exit(caught < len(results) or bool(hunters.broken_without_mutant))


if __name__ == "__main__":
    main()
