"""The modes of `everynode simulate`: forecast of a rollout, campaign of many seeds, reports."""
