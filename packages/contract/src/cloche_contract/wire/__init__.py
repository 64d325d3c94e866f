"""The wires, without any I/O: framing of the agent protocol, and the routes of a REST API."""
