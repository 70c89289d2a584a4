"""The section `atlas`: cheap measures of memorisation against exact retraining."""
