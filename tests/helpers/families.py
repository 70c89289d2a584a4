"""A model of every architecture whose twins can be stacked."""

FAMILIES = (
    "mistral-7b-v0.3",
    "llama-3.1-8b",
    "qwen2.5-7b",
    "gemma-2-9b",
    "pythia-6.9b",
    "opt-6.7b",
    "gemma-3-270m",
)
