"""Figures: their style, the elements that they share, drawing and saving."""
