"""Tools for people who write cases: validate, lint, coverage, push, export, diff, import."""
