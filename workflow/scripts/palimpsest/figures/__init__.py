"""Figures: their style, drawing and saving, and the figure of a language.

The other figures belong to sections.
"""
