"""Palimpsest: what a language model memorised, what it learned, what it can forget."""

from palimpsest.extensions import lay_over

__version__ = "0.1.0"

lay_over()
