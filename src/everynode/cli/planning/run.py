"""Running a plan: read the cluster, play the rollout, try one pod, print."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from everynode.api.daemonset import DaemonSet
from everynode.api.versions import decode_daemonset
from everynode.cli.access.cluster import open_cluster
from everynode.cli.access.options import ClusterOptions
from everynode.cli.planning.answer import Answer, plan_document
from everynode.cli.planning.change import Flags, Object, changed_fields, parse_images
from everynode.cli.planning.dry_run import NOT_ASKED, DryRun, pod_to_try, try_pod
from everynode.cli.planning.lines import node_lines, plan_lines
from everynode.cli.planning.question import Question, ask, read_manifest
from everynode.cli.planning.room import find_shortages
from everynode.cli.planning.timing import read_durations, simulated_timing
from everynode.cli.planning.warnings import plan_warnings
from everynode.cli.simulation.forecast import summary
from everynode.cli.simulation.outputs import write_output
from everynode.cli.simulation.recording_page import recording_page
from everynode.cli.terminal.output import print_document
from everynode.cli.terminal.progress import Progress
from everynode.cli.terminal.style import Style
from everynode.cli.terminal.text import format_count, format_duration, parse_duration
from everynode.clock import SystemClock
from everynode.errors import UserError
from everynode.forecast.answer import ForecastError
from everynode.forecast.planned_rollout import PlanRequest, RolloutPlan, plan_rollout
from everynode.pictures.forecast_chart import Drawn, draw_forecasts
from everynode.sim.plans.plan import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What was typed."""

    name: str
    file: str
    images: tuple[str, ...]
    max_unavailable: str
    max_surge: str
    partition: str
    list_nodes: bool
    pull: str
    start: str
    stop: str
    hook: str
    dry_run: bool
    html: Path | None
    svg: Path | None
    output: str

    @property
    def flags(self) -> Flags:
        """What the options change in the DaemonSet; raises UsageError."""
        limits = {
            "maxUnavailable": self.max_unavailable,
            "maxSurge": self.max_surge,
            "partition": self.partition,
        }
        return Flags(parse_images(self.images), {k: v for k, v in limits.items() if v})


def print_plan(access: ClusterOptions, options: PlanOptions) -> None:
    """Make the plan and print it; raises UserError."""
    answer = make_plan(access, options)
    if options.html is not None:
        _write_page(options.html, answer)
    if options.svg is not None:
        _write_chart(options.svg, answer)
    if options.output in ("json", "yaml"):
        print_document(plan_document(answer), options.output)
        return
    style = Style(sys.stdout)
    for line, look in plan_lines(answer):
        click.secho(style.wrap(line), **look)
    if answer.plan is not None and (options.list_nodes or options.output == "wide"):
        click.echo("\n" + "\n".join(node_lines(answer, style)))


def make_plan(access: ClusterOptions, options: PlanOptions) -> Answer:
    """Read the cluster, play the rollout and let the API server check one pod."""
    flags, hook = options.flags, parse_duration("--hook", options.hook)
    given = {"pull": options.pull, "start": options.start, "stop": options.stop}
    read_durations(None, (), given)  # what is wrong with an option is said before reading
    manifest = read_manifest(options.file) if options.file else None
    question = asyncio.run(_read(access, options.name, manifest, flags))
    durations = read_durations(question.decoded, question.objects.pods, given)
    timing = simulated_timing(durations, question.live, question.new)
    plan = _play(question, timing, hook) if question.objects.nodes is not None else None
    dry_run = NOT_ASKED
    if options.dry_run and plan is not None:
        dry_run = asyncio.run(_try(access, question, plan))
    before, shortages = None, {}
    if plan is not None:
        before = plan.before
        shortages = find_shortages(plan, question.objects, question.new)
    return Answer(
        question=question,
        ds=_decode(question),
        changes=changed_fields(question.live or {}, question.new) if question.live else [],
        durations=durations,
        hook=hook,
        plan=plan,
        dry_run=dry_run,
        warnings=plan_warnings(question.new, before, dry_run, shortages, question.objects.now),
    )


async def _read(
    access: ClusterOptions, name: str, manifest: Object | None, flags: Flags
) -> Question:
    async with open_cluster(access) as cluster:
        return await ask(cluster, name, manifest, flags)


async def _try(access: ClusterOptions, question: Question, plan: RolloutPlan) -> DryRun:
    first = next((each.node for each in plan.nodes if each.order == 1), "")
    wanted = pod_to_try(plan.before, first)
    if wanted is None:
        return NOT_ASKED
    async with open_cluster(access, any_version=True) as cluster:
        return await try_pod(cluster.client, wanted, question.namespace)


def _play(question: Question, timing: Timing, hook: float) -> RolloutPlan:
    request = PlanRequest(
        new=question.new,
        objects=question.objects,
        namespace=question.namespace,
        timing=timing,
        hook=hook,
    )
    total = len(question.objects.nodes or ())
    progress = Progress(sys.stderr, SystemClock(), total=total, what="nodes")

    def show(step: str, done: int) -> None:
        if sys.stderr.isatty():
            progress.show(done, step)

    try:
        return plan_rollout(request, show)
    except ForecastError as error:
        raise UserError(str(error)) from None
    finally:
        progress.end()


def _decode(question: Question) -> DaemonSet:
    metadata = {"uid": "none", **question.new["metadata"], "namespace": question.namespace}
    return decode_daemonset({**question.new, "metadata": metadata})


def _required_plan(option: str, path: Path, answer: Answer) -> RolloutPlan:
    """Return the plan for a file that an option names; raises UserError if there is none."""
    if answer.plan is None:
        missing = ", ".join(answer.question.objects.missing)
        raise UserError(
            f"{option} {path}: there is no forecast: you lack the permission to {missing}"
        )
    return answer.plan


def _write_chart(path: Path, answer: Answer) -> None:
    forecast = _required_plan("--svg", path, answer).forecast
    heading = f"{forecast.name} on {format_count(forecast.nodes, 'node')}: a plan"
    chart = draw_forecasts(heading, [Drawn(forecast, forecast.name, summary(forecast))])
    write_output("--svg", path, chart)


def _write_page(path: Path, answer: Answer) -> None:
    plan, durations = _required_plan("--html", path, answer), answer.durations
    paces = (
        f"{format_duration(durations.pull.seconds)} to run, "
        f"{format_duration(durations.start.seconds)} to be Ready, "
        f"{format_duration(durations.stop.seconds)} to stop"
    )
    page = recording_page(answer.ds, plan.forecast, plan.recording, paces=paces)
    write_output("--html", path, page)
