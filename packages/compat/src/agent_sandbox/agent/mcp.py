"""`python -m agent_sandbox.agent.mcp`: the sandbox tools over stdio.

Source: seed 001, part 7; checklist 212.
"""

import sys

from cloche_mcp_stdio import reserve

__all__ = ["main"]


def main() -> int:
    """Serve the sandbox tools until the client is gone; return the exit status of the process."""
    reserve()  # before anything else is imported: what an import prints must not reach the client
    from cloche_mcp_stdio import serve

    return serve("sandbox")


if __name__ == "__main__":
    sys.exit(main())
