"""The models of the report: pretrained ones, and twins, which begin with random weights."""

from collections.abc import Sequence

from palimpsest.pretrained.catalogue import made_in

TWIN, PRETRAINED = "twin", "pretrained"
WHAT_A_TWIN_IS = (
    "a twin has the architecture of a pretrained model, but is shrunk and begins with random "
    "weights, so it knows nothing but the strings of this experiment"
)


def rows(models: Sequence[dict]) -> list[dict]:
    shown = [
        {
            "model": one["model"],
            "scale": scale_of(one),
            "parameters": magnitude(one["parameters"]),
            "begins": _begins(one),
            "trained_by": f"{one['engine']}, {one['precision']}{_adapter(one)}",
        }
        for one in models
    ]
    return sorted(shown, key=lambda row: row["scale"] != PRETRAINED)


def _adapter(model: dict) -> str:
    rank = model["adapter_rank"]
    return "" if rank is None else f", only adapters (LoRA of rank {rank})"


def scale_of(model: dict) -> str:
    return TWIN if model["scale"] == "twin" else PRETRAINED


def sentence(models: Sequence[dict]) -> str:
    """One sentence: how many of the models that are trained here are twins; empty without models.

    Models that are only asked, and those of losses that a user measured, are none of them.
    """
    n_twins = sum(scale_of(one) == TWIN for one in models)
    n_pretrained = len(models) - n_twins
    if not models:
        return ""
    if not n_twins:
        return (
            "Every model that was trained here is pretrained: it had learned from other text "
            "before this experiment."
        )
    if not n_pretrained:
        return f"Every model that was trained here is a twin: {WHAT_A_TWIN_IS}."
    pretrained = f"{n_pretrained} {'is' if n_pretrained == 1 else 'are'} pretrained"
    twins = f"{n_twins} {'is a twin' if n_twins == 1 else 'are twins'}"
    return f"Of the models that were trained here, {pretrained} and {twins}: {WHAT_A_TWIN_IS}."


def magnitude(n: int) -> str:
    """A number of parameters to three digits: 58,600, 135 million, 1.32 billion."""
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if n >= unit:
            return f"{n / unit:.3g}{name}"
    return f"{float(f'{n:.3g}'):,.0f}"


def _begins(model: dict) -> str:
    if scale_of(model) == TWIN:
        return "random weights"
    if converted := made_in(model["source"]):
        return f"{model['source']}; the weights were quantised to {converted.quantisation}"
    return f"{model['source']}, revision {model['revision']}"
