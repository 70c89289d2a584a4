"""The evaluation of unlearned models: scores, other metrics, gaps and what remains memorised."""
