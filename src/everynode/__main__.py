"""Lets `python -m everynode` do what `everynode` does."""

from everynode.cli.main import main

main()
