from __future__ import annotations

from everynode.cli.terminal.chart import HEIGHT, MARGIN, NARROWEST, WIDTH, draw

CURVE = [(0.0, 0, 2), (30.0, 2, 2), (60.0, 4, 0)]


def test_a_rollout_is_drawn_from_nothing_to_all() -> None:
    lines = list(draw(CURVE, total=4, most=2))
    assert len(lines) == HEIGHT + 3
    top, bottom = lines[0], lines[HEIGHT - 1]
    assert (top[:8], top[-2:]) == ("     4 │", " █")
    assert (bottom[:9], bottom.count("█")) == ("     0 │ ", WIDTH // 2 + 1)
    assert lines[HEIGHT] == "updated└" + "─" * WIDTH


def test_nodes_that_are_down_are_drawn_beside_the_budget() -> None:
    down = list(draw(CURVE, total=4, most=4))[HEIGHT + 1]
    assert down.startswith("   down ▄▄▄")
    assert "█" not in down


def test_the_axis_names_the_middle_and_the_end() -> None:
    assert list(draw(CURVE, total=4, most=2))[-1].split("  ")[-1].strip() == "1 min"
    assert " 30 s " in list(draw(CURVE, total=4, most=2))[-1]


def test_where_nothing_happened_nothing_is_drawn() -> None:
    assert list(draw([(0.0, 0, 0)], total=4, most=1)) == []
    assert list(draw([], total=4, most=1)) == []


def test_a_single_node_of_many_is_seen() -> None:
    lines = list(draw([(0.0, 0, 0), (10.0, 1, 1)], total=5000, most=1000))
    assert "▁" in lines[HEIGHT - 1]
    assert "▁" in lines[HEIGHT + 1]


def test_a_narrow_terminal_gets_a_narrow_picture() -> None:
    assert max(map(len, draw(CURVE, total=4, most=2, room=40))) == 40
    assert max(map(len, draw(CURVE, total=4, most=2, room=1))) == MARGIN + NARROWEST
