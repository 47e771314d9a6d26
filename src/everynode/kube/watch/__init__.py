"""List and watch: the state machine, its requests, the decoder, and the cache it fills."""
