"""The MCP servers, under the paths that deployments name."""
