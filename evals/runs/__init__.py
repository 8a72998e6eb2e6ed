"""Runs: one trial, the journal, and a whole run from dataset to verdict."""
