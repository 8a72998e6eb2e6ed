"""Question-and-answer evaluation of an MCP server, from an XML file."""
