"""Twogate: two gates that tell whether agents can use an MCP server."""

__version__ = "0.1.0"
