"""When two answers are alike: equal but for uids, times, versions, and what has a reason to differ.

The versions of one object are numbered in the order in which they are first seen, so that a write
that changes nothing must be one on both servers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from everynode.clock import SystemClock
from tests.agreement.question import NAMESPACE, Question
from tests.agreement.servers import Answer, Server

_CLOCK: Final = SystemClock()
_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ADDRESS: Final = re.compile(r"\b10\.(?:96|213)\.\d+\.\d+\b")
_OBJECT: Final = re.compile(r'Invalid value: "?\{.*\}"?: ')  # members in any order
_SCHEME: Final = re.compile(r' in scheme "\S+"')
_RECORD: Final = re.compile(r"(record|too old resource version:)( \d+)? \(\d+\)")
_AGE: Final = re.compile(r"\d+s")
_GENERATED: Final = re.compile(r"\b(gen-|Bad_|x{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b")
# The real server is started without what gives pods their accounts; descriptions are our own; what
# a budget remembers of evictions goes when its controller gets round to it.
_LEFT_OUT: Final = frozenset(
    f"{mark}{name}"
    for mark in ("", "f:")
    for name in ("serviceAccount", "serviceAccountName", "description", "time", "disruptedPods")
)
_PATIENCE: Final = 120.0


class Memory:
    """The responses of one server so far."""

    def __init__(self, space: str) -> None:
        self._words = {"NS": space}
        self._versions: dict[str, list[str]] = {}

    def fill_in(self, question: Question) -> Question:
        """The question with the names and values that are this server's."""
        body = question.body
        if not isinstance(body, bytes | None):
            body = json.loads(self._filled(json.dumps(body)))
        return replace(question, path=self._filled(question.path), body=body)

    def _filled(self, text: str) -> str:
        for word, value in self._words.items():
            text = text.replace(word, value)
        return text

    def keep(self, question: Question, answer: Answer) -> None:
        for name, path in question.keep.items():
            self._words[f"<{name}>"] = str(at(answer.body, path))

    def plain(self, value: Any, key: str = "") -> Any:
        """Something without what is different in every run."""
        if isinstance(value, dict):
            return {
                name: self._version(value) if name == "resourceVersion" else self.plain(item, name)
                for name, item in value.items()
                if name not in _LEFT_OUT and item is not None
            }
        if isinstance(value, list):
            items = [self.plain(item) for item in value]
            # A real server checks some things twice, and says so twice.
            if key == "causes":
                return _unique(sorted(items, key=str))
            # Owners come by the second in which they wrote, which is another in every run.
            return sorted(items, key=_owner) if key == "managedFields" else items
        if isinstance(value, str):
            return "TOKEN" if key == "continue" and value else _plain_text(value)
        return value

    def _version(self, meta: dict[str, Any]) -> str:
        version, uid = meta["resourceVersion"], meta.get("uid")
        if not uid or not version:
            return "VERSION" if version else ""
        seen = self._versions.setdefault(uid, [])
        if version not in seen:
            seen.append(version)
        return f"version {seen.index(version)}"


def _plain_text(text: str) -> str:
    if _AGE.fullmatch(text):
        return "AGE"
    text = _OBJECT.sub("Invalid value: OBJECT: ", _GENERATED.sub(r"\1SUFFIX", text))
    text = _SCHEME.sub("", _RECORD.sub(r"\1 VERSION", text))
    return _ADDRESS.sub("ADDRESS", _TIME.sub("TIME", _UID.sub("UID", text)))


def _owner(entry: Any) -> tuple[str, ...]:
    names = ("manager", "operation", "subresource", "apiVersion")
    return tuple(entry.get(name, "") for name in names) if isinstance(entry, dict) else ()


def _unique(items: list[Any]) -> list[Any]:
    return [item for index, item in enumerate(items) if item not in items[:index]]


def at(value: Any, path: str) -> Any:
    """What is at a dotted path, None where it leads nowhere."""
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


class Conversation:
    """The same questions to two servers, and where their answers differ."""

    def __init__(self, real: Server, ours: Server) -> None:
        space = f"ns{_CLOCK.name_suffix()}"
        self._parties = [(server, Memory(space)) for server in (real, ours)]
        self._begun = False
        self.differences: list[str] = []

    async def hold(self, questions: Sequence[Question]) -> None:
        """Ask one after the other, both servers at once."""
        first = () if self._begun else (NAMESPACE,)
        self._begun = True
        for question in (*first, *questions):
            elsewhere = replace(question, path=question.instead or question.path)
            asked = zip(self._parties, (question, elsewhere), strict=True)
            real, ours = await asyncio.gather(*(_answer(*party, each) for party, each in asked))
            same = (real[0] < 400) is (ours[0] < 400) if question.differs else real == ours
            if not same:
                self.differences.append(f"{question}\n{difference_text(real, ours)}")

    async def watch(
        self, before: Sequence[Question], watches: Sequence[Question], then: Sequence[Question]
    ) -> None:
        """Begin some watches, change something, and compare the events of each watch."""
        await self.hold(before)
        under_way = [
            [await server.watch(memory.fill_in(watch)) for watch in watches]
            for server, memory in self._parties
        ]
        await self.hold(then)
        for watch, *both in zip(watches, *under_way, strict=True):
            real, ours = [
                [memory.plain(event) for event in await watching.events() if _counts(event)]
                for watching, (_, memory) in zip(both, self._parties, strict=True)
            ]
            if real != ours:
                self.differences.append(f"{watch}\n{difference_text(real, ours)}")


def _counts(event: Any) -> bool:
    """Drop bookmarks, whose times differ, except the one that ends the initial events."""
    annotations = at(event, "object.metadata.annotations") or {}
    return event["type"] != "BOOKMARK" or "k8s.io/initial-events-end" in annotations


async def _answer(server: Server, memory: Memory, question: Question) -> tuple[int, Any, Any]:
    question = memory.fill_in(question)
    async with asyncio.timeout(_PATIENCE):
        answer = await server.ask(question)
        while question.until and at(answer.body, question.until[0]) != question.until[1]:
            await _CLOCK.sleep(0.05)
            answer = await server.ask(question)
    memory.keep(question, answer)
    body = at(answer.body, question.only) if question.only else answer.body
    return answer.status, memory.plain(answer.headers), memory.plain(body)


def difference_text(real: Any, ours: Any) -> str:
    """Both answers, shortened to where they part."""
    return "\n".join(_parting(real, ours, ""))


def _parting(real: Any, ours: Any, path: str) -> list[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        keys = sorted({*real, *ours})
        pairs = [(f"{path}.{key}", real.get(key, "—"), ours.get(key, "—")) for key in keys]
    elif isinstance(real, list | tuple) and isinstance(ours, list | tuple):
        if len(real) != len(ours):
            return [f"  {path}", f"    real: {real}", f"    ours: {ours}"]
        pairs = [(f"{path}.{i}", *both) for i, both in enumerate(zip(real, ours, strict=True))]
    else:
        return [f"  {path}", f"    real: {real}", f"    ours: {ours}"]
    return [
        line for where, one, other in pairs if one != other for line in _parting(one, other, where)
    ]
