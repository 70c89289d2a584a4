"""Palimpsest: what a language model memorised, what it learned, what it can forget."""

__version__ = "0.1.0"
