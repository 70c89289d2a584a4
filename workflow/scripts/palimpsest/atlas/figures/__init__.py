"""The figures of the atlas."""
