"""How rollouts are printed: documents for programs, lines and pictures for people."""
