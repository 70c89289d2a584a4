"""Tiny language models of texts with random weights, and tokenizers of three kinds."""

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE, Unigram, WordPiece
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXTS = [
    "Ann Ek was born in Lund.",
    "Ben wrote: call 555-0199 or <script>alert(1)</script> </s>!",
    "Grüße an Zoë, naïve café — 東京\nand a second line",
    "a",
    "x " * 60,
]
SPECIAL = ["<unk>", "<s>", "</s>"]
SPECIALS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}


def byte_level() -> Tokenizer:
    made = Tokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


def sentence_piece() -> Tokenizer:
    made = Tokenizer(Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(TEXTS, trainer)
    return made


def word_piece() -> Tokenizer:
    made = Tokenizer(WordPiece(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=SPECIAL, show_progress=False)
    made.train_from_iterator(TEXTS, trainer)
    return made


def write(folder, tokenizer=byte_level, seed=0, start=True, **settings) -> str:
    """A tiny Llama with random weights, and a tokenizer."""
    made = tokenizer()
    torch.manual_seed(seed)
    config = {
        "vocab_size": made.get_vocab_size(),
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 200,
        **settings,
    }
    model = LlamaForCausalLM(LlamaConfig(**config))
    for weight in model.parameters():  # far from uniform predictions
        weight.data.mul_(6)
    model.save_pretrained(folder, max_shard_size="20KB")
    specials = dict(SPECIALS)
    if not start:
        del specials["bos_token"]
    PreTrainedTokenizerFast(tokenizer_object=made, **specials).save_pretrained(folder)
    return str(folder)
