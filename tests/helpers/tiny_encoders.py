"""Tiny encoders with random weights, and labelled texts that they can learn."""

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, processors
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import DistilBertConfig, DistilBertForMaskedLM, PreTrainedTokenizerFast

LABELS = {"good": ["fine", "warm", "kind"], "bad": ["dull", "cold", "rude"]}
WORDS = {"good": "alpha", "bad": "omega"}
GROUPS = ("she", "he")
FILLERS = ["the", "a", "book", "film", "song", "meal", "was", "seems", "very", "quite", "then"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
CONTEXT = 16


def write(folder, seed: int = 0) -> str:
    """A DistilBERT of two blocks, whose tokens are words."""
    words = [*SPECIAL, *FILLERS, *GROUPS, *WORDS.values(), *LABELS["good"], *LABELS["bad"]]
    made = Tokenizer(WordLevel({word: id for id, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=CONTEXT, **dict(zip(names, SPECIAL, strict=True))
    )
    torch.manual_seed(seed)
    config = DistilBertConfig(
        vocab_size=len(words),
        dim=32,
        hidden_dim=48,
        n_layers=2,
        n_heads=2,
        max_position_embeddings=CONTEXT,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
    )
    DistilBertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def records(n: int, seed: int = 0) -> pd.DataFrame:
    """Distinct texts of five to nine words, one of which tells the label; and their groups."""
    chance, found = np.random.default_rng(seed), {}
    while len(found) < n:
        label = ("good", "bad")[chance.integers(2)]
        group = GROUPS[int(chance.random() < (0.7 if label == "good" else 0.4))]
        words = [group, *chance.choice(FILLERS, chance.integers(3, 8))]
        words.insert(chance.integers(1, len(words) + 1), chance.choice(LABELS[label]))
        found.setdefault(" ".join(words), (label, group))
    labels, groups = zip(*found.values(), strict=True)
    return pd.DataFrame({"text": list(found), "label": labels, "group": groups})
