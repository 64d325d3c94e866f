"""Module paths of the agent-sandbox tools. New code imports `cloche_sdk` and `cloche_mcp_http`."""
