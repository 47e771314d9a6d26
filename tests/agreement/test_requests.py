"""The embedded server gives the same responses to the same requests as a real one."""

from __future__ import annotations

import pytest

from tests.agreement import about_deletes, about_lists, about_watches
from tests.agreement.corpora import CORPORA
from tests.agreement.normalise import Conversation
from tests.agreement.servers import Server

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("about", CORPORA)
async def test_both_servers_answer_alike_about(conversation: Conversation, about: str) -> None:
    await conversation.hold(CORPORA[about])
    assert not conversation.differences, "\n\n".join(conversation.differences)


async def test_both_servers_answer_alike_about_evictions(staffed: Server, ours: Server) -> None:
    conversation = Conversation(staffed, ours)
    await conversation.hold(about_deletes.EVICTIONS)
    assert not conversation.differences, "\n\n".join(conversation.differences)


async def test_both_servers_answer_alike_about_what_they_forgot(
    forgetful: Server, ours_forgetful: Server
) -> None:
    conversation = Conversation(forgetful, ours_forgetful)
    await conversation.hold(about_lists.FORGOTTEN)
    assert not conversation.differences, "\n\n".join(conversation.differences)


async def test_both_servers_send_the_same_watch_events(conversation: Conversation) -> None:
    await conversation.watch(about_watches.BEFORE, about_watches.WATCHES, about_watches.THEN)
    assert not conversation.differences, "\n\n".join(conversation.differences)
