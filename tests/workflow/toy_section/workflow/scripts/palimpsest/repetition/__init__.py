"""Repetition: how often training strings are repeated."""
