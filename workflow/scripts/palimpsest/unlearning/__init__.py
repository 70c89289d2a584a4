"""Unlearning: methods that make a model forget, and a test of whether it did."""
