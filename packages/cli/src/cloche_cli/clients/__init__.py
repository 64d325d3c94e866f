"""MCP clients: where each keeps its servers, and how our entry gets in and out without touching the rest."""
