"""The atlas: cheap measures of memorisation beside exact retraining, and what each costs."""
