from __future__ import annotations

import pytest

from everynode.dashboard.guard import Guard, Refusal

OWN = {"Host": "127.0.0.1:8765"}


@pytest.mark.parametrize(
    ("method", "more", "status"),
    [
        ("GET", {"Host": "evil.example:8765"}, 403),
        ("GET", {"Host": "127.0.0.1:9999"}, 403),
        ("GET", {"Host": ""}, 403),
        ("GET", {"Origin": "http://evil.example"}, 403),
        ("GET", {"Origin": "null"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Origin": "http://127.0.0.1:8765"}, 405),
    ],
)
def test_requests_of_others_are_refused(method: str, more: dict[str, str], status: int) -> None:
    with pytest.raises(Refusal) as refused:
        Guard(8765).check(method, {**OWN, **more})
    assert refused.value.status == status
    assert refused.value.help


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_its_own_page_is_answered(host: str) -> None:
    address = f"{host}:8765"
    headers = {"Host": address, "Origin": f"http://{address}", "Sec-Fetch-Site": "same-origin"}
    Guard(8765).check("GET", headers)
    Guard(None).check("GET", headers)  # behind a port-forward


def test_behind_a_port_forward_only_the_port_is_free() -> None:
    for headers in (
        {"Host": "everynode.example:8765"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost:8765", "Origin": "http://localhost:9999"},
    ):
        with pytest.raises(Refusal) as refused:
            Guard(None).check("GET", headers)
        assert refused.value.status == 403


def test_only_a_dashboard_with_actions_takes_a_post() -> None:
    Guard(8765, acts=True).check("POST", OWN)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        with pytest.raises(Refusal) as refused:
            Guard(8765, acts=True).check(method, OWN)
        assert refused.value.status == 405


LINK = {**OWN, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


def test_a_link_of_another_page_opens_the_page_in_a_tab_and_nothing_else() -> None:
    link = {**LINK, "Sec-Fetch-Dest": "document"}
    Guard(8765).check("GET", link, "/")
    for headers, path in (
        (link, "/api/sets"),
        (link, "/page/app.js"),
        ({**link, "Host": "evil.example:8765"}, "/"),
        ({**link, "Origin": "http://evil.example"}, "/"),
        ({**LINK, "Sec-Fetch-Dest": "iframe"}, "/"),
        ({**link, "Sec-Fetch-Mode": "no-cors"}, "/"),
    ):
        with pytest.raises(Refusal) as refused:
            Guard(8765).check("GET", headers, path)
        assert refused.value.status == 403
