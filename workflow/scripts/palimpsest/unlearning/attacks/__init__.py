"""Attacks on unlearned models: epsilon, its bounds, and other tests against retrained models."""
