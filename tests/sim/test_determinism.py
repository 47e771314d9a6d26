"""S16: the same seed gives the same history, whatever Python's hash seed is."""

from __future__ import annotations

import os
import subprocess
import sys

_SCRIPT = """
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import play

actions = (
    Action("set-image", at=8.0, args={"image": "agent:v2"}),
    Action("crash-after", at_request=25),
    Action("lose-node", at=9.0, seconds=20.0, args={"node": 1}),
    Action("delete-pod", at=10.0, args={"node": 2}),
)
manifest = daemonset(rolling={"maxUnavailable": 1}, min_ready=3)
plan = Plan(5, nodes=4, manifests=(manifest,), actions=actions, quiet_at=30, controllers=2)
result, _ = play(plan)
assert result.kept, result.violations
print(result.trace)
for seed in (3, 11, 14, 27):
    print(play(generate_plan(seed))[0].trace)
"""


def test_same_seed_gives_the_same_history_under_any_hash_seed() -> None:
    traces = {_trace(hash_seed) for hash_seed in ("0", "1", "4711")}
    assert len(traces) == 1


def _trace(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
