"""Metrics of unlearning, judged on models of which it is known what they were trained on."""
