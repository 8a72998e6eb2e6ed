"""Findings about items that are valid, but measure something else than they seem to.

A rule is one small function; `registry.RULES` gives each its code, severity and reason. The codes are documented in
docs/authoring.md and never change their meaning.
"""
