"""Ours answers as a real API server does: the same questions, the same answers."""

from __future__ import annotations

import pytest
from tests.agreement import about_watches
from tests.agreement.corpora import CORPORA
from tests.agreement.likeness import Conversation
from tests.agreement.question import DEFINITIONS, Question, get
from tests.agreement.servers import Server

from everynode.api.crd import NAME, crd
from everynode.clock import SystemClock

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("api-server"),
]


@pytest.fixture
async def _advanced(real: Server) -> None:
    """The definition of the Advanced DaemonSet, which ours has from the beginning."""
    path = f"{DEFINITIONS}/{NAME}?fieldManager=test&force=true"
    install = Question("PATCH", path, crd(), "application/apply-patch+yaml")
    assert (await real.ask(install)).status in (200, 201)
    listed = get("/apis/apps.kruise.io/v1beta1/daemonsets")
    while (await real.ask(listed)).status != 200:
        await SystemClock().sleep(0.1)


@pytest.mark.usefixtures("_advanced")
@pytest.mark.parametrize("about", CORPORA)
async def test_both_servers_answer_alike_about(conversation: Conversation, about: str) -> None:
    await conversation.hold(CORPORA[about])
    assert not conversation.differences, "\n\n".join(conversation.differences)


async def test_both_servers_tell_a_watch_the_same(conversation: Conversation) -> None:
    await conversation.watch(about_watches.BEFORE, about_watches.WATCHES, about_watches.THEN)
    assert not conversation.differences, "\n\n".join(conversation.differences)
