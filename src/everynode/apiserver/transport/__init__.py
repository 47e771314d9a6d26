"""How requests arrive: HTTPS on loopback, or calls in the same process."""
