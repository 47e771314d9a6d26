"""How a rollout would go: the real controller against an embedded cluster on virtual time.

Python programs call `forecast_rollout` (docs/python.md).
"""

from everynode.forecast.answer import Forecast, ForecastError
from everynode.forecast.rollout import forecast_rollout

__all__ = ["Forecast", "ForecastError", "forecast_rollout"]
