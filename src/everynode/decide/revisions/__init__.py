"""ControllerRevisions: the target, the history to keep, and the owner of an object."""
