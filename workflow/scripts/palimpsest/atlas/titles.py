"""The names of measures for readers of figures and of the report.

They are apart from the measures, because figures are declared before any job, and measures load
slowly.
"""

TITLES = {
    "recollection": "Loss (recollection)",
    "recollection_accuracy": "Recollection by accuracy",
    "counterfactual": "Counterfactual, same frequency",
    "contextual": "Contextual, same frequency",
    "bayes": "Bayes",
    "high_loss": "High loss",
    "min_k": "Min-K%",
    "zlib": "zlib",
    "loss_drop": "Fall of the loss",
    "mean_loss": "Mean loss over the epochs",
    "forgetting": "Forgetting",
    "rarity": "Exact rarity",
    "copies": "Copies",
    "unique_n_grams": "Rare 3-grams",
    "isolation": "Edit distance",
    "ngram_density": "Density of n-grams",
    "hidden_density": "Density of hidden states",
    "extraction": "(n, p)-extraction",
    "discoverable": "Discoverable extraction",
    "extraction_strength": "Extraction strength",
    "difference_in_differences": "Difference-in-differences",
    "min_k_plus": "Min-K%++",
    "neighbours": "Neighbours",
    "recall": "ReCaLL",
    "lowercase": "Lower case",
    "reference": "Reference ratio",
    "lira": "LiRA",
    "rmia": "RMIA",
    "ez_mia": "EZ-MIA",
    "gradient norm": "Norm of the gradient",
    "tracin": "TracIn",
    "tracin by adamw": "TracIn, scaled as AdamW",
    "gradient cosine": "Cosine of gradients",
    "ek-fac": "EK-FAC",
    "trak": "TRAK",
    "magic": "MAGIC (exact derivative)",
    "curvature": "Curvature of the loss",
    "itself": "The string itself alone",
    "near_strings": "Edit distance",
    "copies_of_near_strings": "Copies over edit distance",
    "near_derivations": "Choices of the grammar",
    "single removals": "Sum of single removals",
    "retraining": "Retraining once more",
}


def title_of(measure: str) -> str:
    return TITLES.get(measure, measure)
