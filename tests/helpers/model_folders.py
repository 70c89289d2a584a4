"""Folders of models, read as another program reads them: with transformers alone."""

from pathlib import Path

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def nll_of(folder: str | Path, strings: pd.DataFrame) -> pd.Series:
    """The nll of every string of a table `strings`, by its string_id; ends are not predicted."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    nll = {}
    for name, text in zip(strings["string_id"], strings["text"], strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids
        with torch.no_grad():
            # The model's own loss is the mean over the predicted tokens.
            nll[name] = model(input_ids=ids, labels=ids).loss.item() * (ids.shape[1] - 1)
    return pd.Series(nll, name="nll")
