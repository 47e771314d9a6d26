"""A server of the release before answers as ours does, but for what is known to have changed."""

from __future__ import annotations

import pytest

from tests.agreement import about_watches
from tests.agreement.corpora import CORPORA
from tests.agreement.normalise import Conversation
from tests.agreement.previous_release import REFUSALS
from tests.agreement.servers import Server

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("previous-release"),
]


@pytest.mark.parametrize("about", CORPORA)
async def test_the_release_before_answers_alike_about(
    previous: Server, ours: Server, about: str
) -> None:
    conversation = Conversation(previous, ours)
    await conversation.hold(CORPORA[about])
    known = REFUSALS.get(about, ())
    text = "\n\n".join(conversation.differences)
    assert len(conversation.differences) == len(known), text
    for refusal, difference in zip(known, conversation.differences, strict=True):
        assert refusal.explains(difference), difference


async def test_the_release_before_sends_the_same_watch_events(
    previous: Server, ours: Server
) -> None:
    conversation = Conversation(previous, ours)
    await conversation.watch(about_watches.BEFORE, about_watches.WATCHES, about_watches.THEN)
    assert not conversation.differences, "\n\n".join(conversation.differences)
