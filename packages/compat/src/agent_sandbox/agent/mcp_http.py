"""`agent_sandbox.agent.mcp_http:asgi_app`: the application of a deployment.

Source: seed 001, part 7; checklist 211, 212.
"""

from cloche_mcp_http import asgi_app, create_mcp_app

__all__ = ["asgi_app", "create_mcp_app"]
