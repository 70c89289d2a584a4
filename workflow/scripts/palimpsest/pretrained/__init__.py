"""Pretrained models from the package index, as folders that Hugging Face's classes read."""
