"""Servers that show Twogate at work; they run from a checkout and are not part of the wheel."""
