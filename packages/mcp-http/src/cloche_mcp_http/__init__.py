"""Serve one tool set over MCP Streamable HTTP."""

from cloche_mcp_http.app import Limits, create_mcp_app
from cloche_mcp_http.asgi import asgi_app, listed
from cloche_mcp_http.introspection import introspection_oauth
from cloche_mcp_http.jwt_tokens import jwt_oauth
from cloche_mcp_http.oauth import OAuth
from cloche_mcp_http.oauth_settings import oauth_of
from cloche_mcp_http.principals import read_token_file, tokens_of

__all__ = [
    "Limits",
    "OAuth",
    "asgi_app",
    "create_mcp_app",
    "introspection_oauth",
    "jwt_oauth",
    "listed",
    "oauth_of",
    "read_token_file",
    "tokens_of",
]
