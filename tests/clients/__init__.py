"""Real clients of other people against our servers: `nox -s clients` runs all of them and prints a matrix."""
