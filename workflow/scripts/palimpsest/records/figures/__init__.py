"""Figures of the section `records`, one file each."""
