"""The job that fine-tunes an encoder to classify texts, and keeps its activations and answers.

Source: the paper on information measures of neurons, appendix B, table 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils.logging import disable_progress_bar

from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.information.encoders.labelled import evaluated_data, training_data
from palimpsest.information.encoders.study import FEWEST_TESTS
from palimpsest.information.kinds import (
    CLS,
    ENCODER_ANSWERS,
    ENCODER_RUNS,
    LABELLED,
    MEAN,
)
from palimpsest.information.norms import norms
from palimpsest.jobs.memory import less_next_time
from palimpsest.models.build import loading_in_one_line
from palimpsest.models.folders import SAVE_AGAIN, check_tokenizer
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.training.precision import dtype_of

LARGEST_GRADIENT = 1.0  # its norm, at which it is cut
# The columns of answers, and of the texts that they are about
SHOWN = {
    "given": "as_shown",
    "given_agrees": "agrees",
    "given_disagrees": "disagrees",
    "given_without": "text",
}


@dataclass(frozen=True)
class EncoderJob:
    """A run of a study: see the flags of `finetune_encoder.py`."""

    study: str
    variant: str
    seed: int
    model: str
    random_weights: bool
    records: str
    size: int
    tests: int
    epochs: int
    batch_size: int
    rate: float
    label_noise: float
    cls: str
    mean: str
    answers: str
    run: str
    precision: str = "auto"
    threads: int = 1


@dataclass(frozen=True)
class Encoder:
    """A classifier, its tokenizer, and the labels in the order of its outputs."""

    model: torch.nn.Module
    tokenizer: object
    labels: np.ndarray
    longest: int
    device: torch.device
    dtype: torch.dtype = torch.float32

    def mixed(self):
        """A context in which products are in the format `dtype`; weights stay in float32."""
        is_short = self.dtype != torch.float32
        return torch.autocast(self.device.type, self.dtype, enabled=is_short)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts. Raises `UserError` if one is longer than the encoder's context."""
        found = self.tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        for text, ids in zip(texts, found, strict=True):
            if len(ids) > self.longest:
                raise UserError(
                    f"{self.model.name_or_path or 'the encoder'}: a text has {len(ids):,} tokens "
                    f"with its inserted word, and the encoder reads {self.longest:,}: "
                    f"{text[:60]!r}; shorten it, or leave it out"
                )
        return found

    def batch(self, ids: Sequence[list[int]]) -> dict[str, torch.Tensor]:
        """Tokens int[batch, T], filled up on the right, and which of them are of a text."""
        width, filler = max(map(len, ids)), self.tokenizer.pad_token_id
        rows = [own + [filler] * (width - len(own)) for own in ids]
        mask = [[1] * len(own) + [0] * (width - len(own)) for own in ids]
        return {
            "input_ids": torch.tensor(rows, device=self.device),
            "attention_mask": torch.tensor(mask, device=self.device),
        }


def finetune_encoder(job: EncoderJob, attempts: Attempts) -> None:
    """Fine-tune an encoder; write its activations, answers, and norms.

    Raises `UserError` if the folder holds no encoder, if it cannot be loaded, if a text is longer
    than its context, or if training diverges; `OutOfMemory` if the next attempt can succeed.
    """
    torch.set_num_threads(job.threads)
    records = tables.read(job.records, LABELLED)
    train = training_data(records, job.variant, job.seed, job.size, job.label_noise)
    evaluated = evaluated_data(records, job.seed, job.size, job.tests)
    _check_number(job, evaluated)
    encoder = opened(job, np.array(sorted(records["label"].unique()), dtype=object))
    passes, doing = attempts.passes(), {"measuring": False}
    with less_next_time(attempts, "deepspeed", passes, lambda: doing["measuring"]):
        fit(encoder, train, job, passes)
        doing["measuring"] = True
        size = passes.evaluation_batch_size
        vectors, known = activations(encoder, evaluated["as_shown"].tolist(), size)
        columns = {name: evaluated[column].tolist() for name, column in SHOWN.items()}
        columns["train"] = list(train.texts)
        others = {text for texts in columns.values() for text in texts} - known.keys()
        known |= predictions(encoder, sorted(others), size)
    given = {
        name: encoder.labels[[known[text] for text in texts]] for name, texts in columns.items()
    }
    fitted = np.mean(given.pop("train") == train.labels)
    about = {
        "model": Path(job.model).name,
        "language": job.study,
        "size": job.size,
        "seed": job.seed,
        "variant": job.variant,
    }
    for path, position in ((job.cls, CLS), (job.mean, MEAN)):
        layers = {str(layer): own for layer, own in enumerate(vectors[position])}
        with tables.replacing(path) as work, open(work, "wb") as file:
            np.savez(file, **layers)
    answers = evaluated.assign(**about, **given)[ENCODER_ANSWERS.names]
    tables.write(job.answers, answers, ENCODER_ANSWERS)
    run = {**about, "n_layers": len(vectors[CLS]), "fitted": float(fitted)}
    run |= norms(matrices(encoder.model))._asdict()
    tables.write(job.run, pd.DataFrame([run])[ENCODER_RUNS.names], ENCODER_RUNS)
    attempts.forget()


def _check_number(job: EncoderJob, evaluated: pd.DataFrame) -> None:
    if len(evaluated) < FEWEST_TESTS:
        raise UserError(
            f"{job.records}: {len(evaluated)} texts are left to evaluate; give {FEWEST_TESTS} more "
            "than are trained on"
        )


def opened(job: EncoderJob, labels: np.ndarray) -> Encoder:
    """The encoder of a folder with a new head for labels; its weights may be random.

    Raises `UserError` if the folder holds no encoder or lacks weights.
    """
    name = job.model
    check_tokenizer(name)
    disable_progress_bar()
    torch.manual_seed(job.seed)
    with loading_in_one_line(f"{name}: cannot be loaded", name, SAVE_AGAIN):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        _check_encoder(name, config, tokenizer)
        config.num_labels = len(labels)
        if job.random_weights:
            model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
        else:
            model, about = AutoModelForSequenceClassification.from_pretrained(
                name,
                config=config,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
            _check_weights(name, model, about["missing_keys"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    positions = getattr(config, "max_position_embeddings", None) or np.inf
    # RoBERTa's positions begin after the number of the filling token.
    if getattr(config, "position_embedding_type", None) and "roberta" in config.model_type:
        positions -= config.pad_token_id + 1
    longest = int(min(positions, tokenizer.model_max_length, 2**31))
    dtype = dtype_of(job.precision, "full")
    return Encoder(model.to(device), tokenizer, labels, longest, device, dtype)


def _check_encoder(name: str, config, tokenizer) -> None:
    is_encoder = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if not is_encoder or config.is_encoder_decoder or getattr(config, "is_decoder", False):
        raise UserError(
            f"{name}: is no encoder, but of the type {config.model_type}; name a model such as "
            "BERT, DistilBERT or RoBERTa"
        )
    if tokenizer.cls_token_id is None or tokenizer.pad_token_id is None:
        raise UserError(
            f"{name}: its tokenizer has no first token [CLS], or none to fill up with; name a "
            "model such as BERT, DistilBERT or RoBERTa, with its own tokenizer"
        )
    if tokenizer("a")["input_ids"][0] != tokenizer.cls_token_id:
        raise UserError(
            f"{name}: its tokenizer does not begin a text with {tokenizer.cls_token}; save it "
            "again with its post-processor"
        )


def _check_weights(name: str, model: torch.nn.Module, missing: list[str]) -> None:
    """Raise `UserError` if weights of the encoder itself, but for its pooler, are not there."""
    inside = f"{model.base_model_prefix}."
    lacking = [key for key in sorted(missing) if key.startswith(inside) and ".pooler." not in key]
    if lacking:
        raise UserError(
            f"{name}: its files have no weight {lacking[0]!r}"
            + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
            + f", which would be random; {SAVE_AGAIN}"
        )


def fit(encoder: Encoder, train, job: EncoderJob, passes: Passes) -> None:
    """Train all weights by AdamW, with a rate that falls to 0 in a straight line."""
    model, chance = encoder.model, np.random.default_rng([job.seed, 11])
    ids = encoder.ids(train.texts)
    codes = pd.Index(encoder.labels).get_indexer(train.labels)
    optimiser = torch.optim.AdamW(model.parameters(), lr=job.rate, weight_decay=0.0, fused=True)
    n_steps = job.epochs * -(-len(ids) // job.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / n_steps)
    torch.manual_seed(job.seed)
    model.train()
    for _ in range(job.epochs):
        order = chance.permutation(len(ids))
        for begin in range(0, len(order), job.batch_size):
            rows = order[begin : begin + job.batch_size]
            for part in np.array_split(rows, -(-len(rows) // passes.micro_batch_size)):
                labels = torch.from_numpy(codes[part]).to(encoder.device)
                with encoder.mixed():
                    logits = model(**encoder.batch([ids[row] for row in part])).logits
                loss = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="sum")
                (loss / len(rows)).backward()
            if not torch.isfinite(loss):
                raise UserError(
                    f"{job.study}: the loss of {job.variant} is not a number; lower the rate in "
                    f"information/encoders/{job.study}, {job.rate:g}"
                )
            torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
    model.eval()


def activations(
    encoder: Encoder, texts: Sequence[str], batch_size: int
) -> tuple[dict[str, list[np.ndarray]], dict[str, int]]:
    """The stream after each block, float32[texts, neurons] each, by position; and predictions.

    At `cls`, it is that of the first token; at `mean`, the mean over the tokens of a text, without
    those that only fill up. All products are in float32. Predictions are as of `predictions`.
    """
    parts: dict[str, list] = {CLS: [], MEAN: []}
    known = {}
    order, batches = _batches(encoder, texts, batch_size)
    for rows, batch in batches:
        with torch.no_grad():
            found = encoder.model(**batch, output_hidden_states=True)
        mask = batch["attention_mask"][:, :, None].float()
        shares = mask / mask.sum(1, keepdim=True)
        blocks = [own.float() for own in found.hidden_states[1:]]
        parts[CLS].append([own[:, 0].cpu().numpy() for own in blocks])
        parts[MEAN].append([(own * shares).sum(1).cpu().numpy() for own in blocks])
        known |= _by_text(texts, rows, found.logits)
    back = np.argsort(order)
    vectors = {
        position: [np.concatenate(layer)[back] for layer in zip(*own, strict=True)]
        for position, own in parts.items()
    }
    return vectors, known


def predictions(encoder: Encoder, texts: Sequence[str], batch_size: int) -> dict[str, int]:
    """The place of the most probable label of each text."""
    known = {}
    for rows, batch in _batches(encoder, texts, batch_size)[1] if texts else ():
        with torch.no_grad(), encoder.mixed():
            known |= _by_text(texts, rows, encoder.model(**batch).logits)
    return known


def _by_text(texts: Sequence[str], rows: np.ndarray, logits: torch.Tensor) -> dict[str, int]:
    places = logits.argmax(-1).tolist()
    return {texts[row]: place for row, place in zip(rows, places, strict=True)}


def _batches(
    encoder: Encoder, texts: Sequence[str], batch_size: int
) -> tuple[np.ndarray, Iterator[tuple[np.ndarray, dict]]]:
    """An order of texts by their length; and batches in this order, with the places of texts."""
    ids = encoder.ids(texts)
    order = np.argsort([len(own) for own in ids], kind="stable")
    parts = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return order, ((rows, encoder.batch([ids[row] for row in rows])) for rows in parts)


def matrices(model: torch.nn.Module) -> Iterator[np.ndarray]:
    """The matrices of all linear layers, float32[outputs, inputs] each, without embeddings."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            yield module.weight.detach().float().cpu().numpy()
