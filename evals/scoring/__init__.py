"""Scores: what a conversation is worth. Pure; a new scorer is one new file."""
