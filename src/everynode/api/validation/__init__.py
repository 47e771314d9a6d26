"""Whether an object is right, as a list of faults that name the field and say why."""
