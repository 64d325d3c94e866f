"""Framing of the agent protocol for its clients, without any I/O: Connect streams and lines of JSON."""
