"""Models that another program unlearned, beside those that it started from and retrained ones."""
