"""Pictures: SVG in light and dark of forecasts, nodes and figures."""
