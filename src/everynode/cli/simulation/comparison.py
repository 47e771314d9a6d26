"""Comparison: a second forecast beside the first, with another manifest or with other settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from everynode.api.versions import decode_daemonset
from everynode.cli.simulation.forecast import (
    Line,
    assumptions,
    chart_room,
    ending_colour,
    parse_question,
    strategy_text,
    summary,
)
from everynode.cli.terminal.chart import draw
from everynode.cli.terminal.manifest_files import display_name, read_daemonsets
from everynode.cli.terminal.text import format_count, format_duration
from everynode.errors import UsageError
from everynode.forecast.answer import Forecast
from everynode.forecast.forecast import FailHow, ForecastRequest

Object = dict[str, Any]
LETTERS: Final = "AB"
# Fields of updateStrategy.rollingUpdate, and one of the spec.
_ROLLING: Final = ("maxUnavailable", "maxSurge", "partition")
_SETTINGS: Final = (*_ROLLING, "minReadySeconds")
# Options of the command.
_ASSUMPTIONS: Final = (
    *("nodes", "fail", "fail-how", "notready", "pull", "start", "stop", "hook", "seed"),
)
_MAX_NODES: Final = 10_000
_GAP: Final = "   "


class Posed(NamedTuple):
    """A forecast to play, and how it differs from the other one."""

    label: str
    question: ForecastRequest


def parse_questions(manifests: list[Object], options: dict[str, Any]) -> list[Posed]:
    """Return one question, or with --compare two; raises UserError."""
    texts: Sequence[str] = options["compare"]
    files = [each for each in texts if _setting_of(each) is None]
    if len(files) > 1:
        raise UsageError("--compare takes one manifest; settings can be added to it")
    first, source = _labels(options["files"][-1], files[0] if files else options["files"][-1])
    posed = [Posed(first, parse_question(manifests, options))]
    if texts:
        if files:
            others = read_daemonsets(files)
            if len(others) > 1:
                raise UsageError(f"--compare {files[0]}: give a file with one DaemonSet")
            manifests = [*manifests[:-1], *others]
        settings = [found for each in texts if (found := _setting_of(each)) is not None]
        changed, assumed = _with_settings(manifests, options, settings)
        words = ", ".join(f"{name}={value}" for name, value in settings)
        label = f"{source} with {words}" if words else source
        posed.append(Posed(label, parse_question(changed, assumed)))
    return posed


def _labels(*files: str) -> list[str]:
    """Return the names of the files; without their folders, if that tells them apart."""
    short = [Path(display_name(each)).name for each in files]
    return short if len({*short}) == len({*files}) else [display_name(each) for each in files]


def _setting_of(text: str) -> tuple[str, str] | None:
    """Return name and value of a setting; None for a file."""
    name, equals, value = text.partition("=")
    if not equals or Path(text).exists():
        return None
    known = (*_SETTINGS, *_ASSUMPTIONS)
    if name in known and value:
        return name, value
    if "/" in name:
        return None
    meant = get_close_matches(name, known, n=1)
    hint = f"did you mean {meant[0]}?" if meant and name not in known else ""
    raise UsageError(
        f"--compare {text}: {hint or 'give a manifest, or NAME=VALUE with one of the names'} "
        f"{'' if hint else ', '.join(known)}".rstrip()
    )


def _with_settings(
    manifests: list[Object], options: dict[str, Any], settings: Sequence[tuple[str, str]]
) -> tuple[list[Object], dict[str, Any]]:
    """Return copies of manifests and options with the settings in them."""
    *before, new = deepcopy(manifests)
    options = dict(options)
    for name, value in settings:
        if name in _SETTINGS:
            _set_field(new, name, value, names=[each for each, _ in settings])
        elif name == "nodes":
            options["nodes"] = _whole(name, value, least=1, most=_MAX_NODES)
        elif name == "seed":
            options["seed"] = _whole(name, value)
        elif name == "fail-how" and value not in list(FailHow):
            raise UsageError(f"--compare fail-how={value}: give one of {', '.join(FailHow)}")
        else:
            options[name.replace("-", "_")] = value
    return [*before, new], options


def _set_field(manifest: Object, name: str, value: str, *, names: Sequence[str]) -> None:
    written: int | str = int(value) if value.isdecimal() else value
    if name == "minReadySeconds":
        manifest["spec"][name] = written
        return
    strategy = manifest["spec"].setdefault("updateStrategy", {})
    rolling = strategy.setdefault("rollingUpdate", {})
    rolling[name] = written
    # One of the two is in use; what is set to more than nothing replaces the other.
    other = {"maxSurge": "maxUnavailable", "maxUnavailable": "maxSurge"}.get(name)
    if other is not None and other not in names and rolling.get(other, 0) not in (0, "0%"):
        rolling[other] = 0
    if name == "maxSurge" and other not in names:
        rolling[other] = 0


def _whole(name: str, value: str, *, least: int = 0, most: int = 2**63) -> int:
    if not value.isdecimal() or not least <= int(value) <= most:
        raise UsageError(f"--compare {name}={value}: give a whole number")
    return int(value)


# --- Text ----------------------------------------------------------------------------------------


def comparison_heading(posed: Sequence[Posed], answers: Sequence[Forecast]) -> str:
    """What is compared, in one line."""
    nodes = dict.fromkeys(format_count(each.question.nodes, "node") for each in posed)
    names = dict.fromkeys(each.name for each in answers)
    return f"{' and '.join(names)} on {' and '.join(nodes)}: two forecasts"


def comparison_lines(
    posed: Sequence[Posed], answers: Sequence[Forecast], *, assumed: bool
) -> Iterator[Line]:
    """The lines to print, each with its style for click.secho."""
    yield comparison_heading(posed, answers), {"bold": True}
    yield "", {}
    taken = [list(_assumed_lines(each.question, assumed=assumed)) for each in posed]
    for letter, each, lines in zip(LETTERS, posed, taken, strict=True):
        yield f"  {letter:<10} {each.label}", {"bold": True}
        own = lines if taken[0] != taken[1] else []
        for text in (strategy_text(decode_daemonset(each.question.new)), *own):
            yield f"  {'':<10} {text}", {}
    if taken[0] == taken[1]:
        for number, text in enumerate(taken[0]):
            yield f"  {'' if number else 'assumed':<10} {text}", {}
    yield from _charts(answers)
    yield "", {}
    yield from _table(answers)
    yield "", {}
    for letter, answer in zip(LETTERS, answers, strict=True):
        yield f"{letter}: {summary(answer)}", {"bold": True, "fg": ending_colour(answer)}


def _assumed_lines(question: ForecastRequest, *, assumed: bool) -> Iterator[str]:
    for _, text in assumptions(question, decode_daemonset(question.new), assumed=assumed):
        yield text


def _charts(answers: Sequence[Forecast]) -> Iterator[Line]:
    """Both curves, one above the other, with the same scales."""
    end = max(each.curve[-1][0] if each.curve else 0.0 for each in answers)
    total = max(each.nodes for each in answers)
    most = max(max(each.budget, each.most_down) for each in answers)
    for letter, each in zip(LETTERS, answers, strict=True):
        lines = list(draw(each.curve, total=total, most=most, room=chart_room(), end=end))
        if lines:
            yield "", {}
        for number, line in enumerate(lines):
            text = line if number else f"{letter}{line[1:]}"
            yield text, {"fg": "green"} if "│" in text else {}


def _table(answers: Sequence[Forecast]) -> Iterator[Line]:
    rows = [row for row in _rows(answers) if any(text not in ("", "0") for text in row[1:])]
    widths = [max(len(row[column]) for row in rows) for column in (1, 2)]
    yield f"  {'':<10} {LETTERS[0]:>{widths[0]}}{_GAP}{LETTERS[1]:>{widths[1]}}", {"bold": True}
    for word, one, other in rows:
        yield f"  {word:<10} {one:>{widths[0]}}{_GAP}{other:>{widths[1]}}", {}


def _rows(answers: Sequence[Forecast]) -> Iterator[tuple[str, str, str]]:
    def row(word: str, texts: Iterator[str]) -> tuple[str, str, str]:
        one, other = texts
        return word, one, other

    yield row("ending", (each.ending for each in answers))
    yield row("takes", (format_duration(each.seconds) for each in answers))
    yield row("updated", (f"{each.updated:,} of {each.nodes:,}" for each in answers))
    yield row("most down", (f"{each.most_down:,}" for each in answers))
    promised = (0 if each.surging else each.budget for each in answers)
    yield row("promised", (f"{each:,}" for each in promised))
    yield row("doubled", (f"{each.most_doubled:,}" for each in answers))
    yield row("a minute", (f"{each.per_minute:,.1f}" for each in answers))
    yield row("stuck", (f"{len(each.stuck):,}" for each in answers))
    yield row("waiting", (f"{each.to_come:,}" for each in answers))
    yield row("held", (f"{each.held:,}" for each in answers))
    yield row("NotReady", (f"{len(each.silent):,}" for each in answers))
    yield row("API writes", (f"{each.writes_per_pod:.1f} per pod" for each in answers))


def echo_lines(lines: Iterator[Line]) -> None:
    """Print lines with their styles."""
    for line, style in lines:
        click.secho(line, **style)
