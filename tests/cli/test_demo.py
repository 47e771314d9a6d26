from __future__ import annotations

import io

from everynode.cli.demo import show


async def test_the_demo_rolls_out_a_canary_and_then_the_rest_and_keeps_its_promises() -> None:
    stream = io.StringIO()
    await show(8, 40.0, stream)
    text = stream.getvalue()
    assert "Canary: 2 of 8 nodes run agent:v2" in text
    assert "Rollout: 8 of 8 nodes run agent:v2" in text
    assert text.count("  kept  ") == 3
    assert "BROKEN" not in text
