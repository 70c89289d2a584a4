"""Encoders that are fine-tuned to classify texts, with shortcut words and shuffled labels."""
