"""The parts of `everynode plan`."""
