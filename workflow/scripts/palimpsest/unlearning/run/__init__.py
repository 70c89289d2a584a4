"""Unlearning runs: the trainings, the jobs, and how methods are applied to models."""
