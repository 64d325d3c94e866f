"""Starts the server of the bundle: `abx mcp start`. Generated; do not edit. See schemas/."""

import sys

from cloche_cli.main import main

if __name__ == "__main__":
    sys.exit(main(["mcp", "start"]))
