from __future__ import annotations

from everynode.forecast.curve import thin_out


def test_a_short_curve_stays_as_it_is() -> None:
    curve = [(0.0, 0, 1), (1.0, 1, 0)]
    assert thin_out(curve, 2) == curve


def test_of_a_long_curve_the_end_and_the_most_nodes_down_stay() -> None:
    curve = [(float(time), time, 7 if time == 321 else 1) for time in range(1000)]
    found = thin_out(curve, 50)
    assert len(found) <= 50
    assert found[-1][:2] == (999.0, 999)
    assert max(down for _, _, down in found) == 7
