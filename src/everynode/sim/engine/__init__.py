"""Virtual time: an event loop, a clock and processes that can be killed."""
