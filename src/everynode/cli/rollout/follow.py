"""Following a rollout: redraws its picture with every change, until the rollout has ended."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TextIO

import click

from everynode.cli.access.cluster import Cluster, open_cluster
from everynode.cli.access.daemonset_names import find_daemonset
from everynode.cli.access.options import ClusterOptions
from everynode.cli.rollout.picture import fleet_picture, one_line
from everynode.cli.terminal.style import Style, cut_line
from everynode.cli.terminal.text import format_duration, parse_duration
from everynode.errors import UserError, first_user_error
from everynode.inspect.evaluate import evaluate
from everynode.inspect.fleet import FleetView, RolloutState
from everynode.inspect.live import LiveSnapshot

_REDRAW_INTERVAL: Final = 0.2  # seconds between two pictures, at least
_TICK: Final = 1.0  # ages and paces change without an event
_SHARE: Final = 3.0  # the pause is at least this often the time that a picture takes


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """What is followed, for how long, and how it is drawn."""

    name: str
    timeout: str
    group_by: str
    all_names: bool = False
    where: str = ""  # options of the command that helps


class Screen:
    """Draws pictures over each other on a terminal; elsewhere prints a line when it changes."""

    def __init__(self, stream: TextIO) -> None:
        self.style = Style(stream)
        self._stream = stream
        self._drawn = 0
        self._line = ""
        self._warning = ""

    def draw(self, fleet: FleetView, now: float, options: FollowOptions, outage: str) -> None:
        """Show how the rollout stands, and that it may stand otherwise during an outage."""
        warning = f"warning: out of date, trying again: {outage}" if outage else ""
        if not self.style.is_terminal:
            self._print(one_line(fleet))
            self._warn(warning)
            return
        picture = fleet_picture(
            fleet,
            self.style,
            now,
            group_by=options.group_by,
            all_names=options.all_names,
            where=options.where,
        )
        for line in self.style.wrap(warning).splitlines():
            picture.append(self.style.paint(line, "yellow"))
        # What scrolled out of the screen could not be drawn over.
        shown = [cut_line(line, self.style.width) for line in picture[: self.style.height - 1]]
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        self._stream.write(up + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J")
        self._stream.flush()
        self._drawn = len(shown)

    def _warn(self, warning: str) -> None:
        if warning != self._warning:
            self._warning = warning
            click.echo(self.style.paint(warning or "up to date again"), err=True)

    def _print(self, line: str) -> None:
        if line != self._line:
            self._line = line
            click.echo(self.style.paint(line))


async def follow(access: ClusterOptions, options: FollowOptions) -> int:
    """Draw the rollout until it has ended; return the exit code."""
    limit = parse_duration("--timeout", options.timeout) if options.timeout else None
    async with open_cluster(access) as cluster:
        found = await find_daemonset(cluster, options.name)
        options = replace(options, where=cluster.where(found.ds.namespace))
        live = LiveSnapshot(cluster.client.transport, cluster.clock, found.ds)
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(live.run())
                code = await _draw_until_end(cluster, live, options, limit)
                watching.cancel()
        except BaseExceptionGroup as errors:
            raise first_user_error(errors) from None
    return code


async def _draw_until_end(
    cluster: Cluster, live: LiveSnapshot, options: FollowOptions, limit: float | None
) -> int:
    clock, screen = cluster.clock, Screen(sys.stdout)
    began = clock.monotonic()
    while True:
        live.changed.clear()
        started = drawn = clock.monotonic()
        if live.begun:
            fleet = _evaluate(live, clock.now(), options.name)
            screen.draw(fleet, clock.now(), options, _outage(live, fleet))
            drawn = clock.monotonic()
            if fleet.state.ends_watch:
                return 1 if fleet.state is RolloutState.STALLED else 0
        if limit is not None and started - began >= limit:
            raise UserError(f"not ended after {format_duration(limit)}; --timeout is over")
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await live.changed.wait()
        # Changes that come together are drawn together, and drawing leaves time for other work.
        await clock.sleep(max(_REDRAW_INTERVAL, _SHARE * (drawn - started)))


def _evaluate(live: LiveSnapshot, now: float, name: str) -> FleetView:
    snapshot = live.current()
    if snapshot is None:
        raise UserError(f"{name} was deleted while it was watched")
    return evaluate(snapshot, now).fleet


def _outage(live: LiveSnapshot, fleet: FleetView) -> str:
    """Return what is wrong with a watch that has delivered before; empty if all are well."""
    lost = {
        name: why for name, why in live.troubles.items() if f"watch {name}" not in fleet.missing
    }
    return next((f"{name}: {lost[name]}" for name in sorted(lost)), "")
