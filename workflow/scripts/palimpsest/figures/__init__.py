"""Figures: how they look, how they are drawn and saved, and the one of a language.

Sections list their own.
"""
