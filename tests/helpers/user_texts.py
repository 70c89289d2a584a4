"""Texts of a user that are cut and embedded, without Snakemake."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from helpers.checkpoints import write_checkpoint
from helpers.forks import python
from palimpsest import tables
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.segments import segmented, tabulated
from palimpsest.density.text_embedding import TextJob, embed_text
from palimpsest.density.texts import CORPUS, QUERIES, QUERY, SEGMENT_ROLES
from palimpsest.training.attempts import Attempts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config/texts"
MODELS = "config/models.tsv"


def write_lines(path, *texts):
    """A JSONL file of texts."""
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def embedded(folder, embedding, model=None, models=ROOT / MODELS, corpus=None, queries=None):
    """The tables of an embedded text, by default the example: segments and embeddings by role.

    `corpus` is a file, and `queries` is one, or segments by the name of the set. What a language
    model's job says is in the file `said` of the folder.
    """
    if not isinstance(queries, dict):
        queries = {QUERIES: segmented(queries or EXAMPLE / "example-queries.jsonl", 50, 40)}
    made = segmented(corpus or EXAMPLE / "example-corpus.jsonl", 50, 40), queries
    found = [], []
    for role, text in zip(SEGMENT_ROLES, made, strict=True):
        segments, path = (folder / role / f"{n}.parquet" for n in ("segments", "embeddings"))
        segments.parent.mkdir(exist_ok=True)
        tables.write(segments, tabulated("mine", text), SEGMENTS)
        of_corpus = None if role == CORPUS else found[1][0]
        used = model if role == QUERY or embedding == "hidden" else None
        embed(folder, (segments, path), (embedding, used, models), of_corpus)
        found[0].append(segments)
        found[1].append(path)
    return found


def embed(folder, files, how, corpus):
    """Do the job that embeds segments; with a language model, in a process of its own."""
    segments, path = files
    embedding, model, models = (each and str(each) for each in how)
    if model is None:
        asked = {"micro_batch_size": 1, "evaluation_batch_size": 4}
        job = TextJob("mine", str(segments), str(path), embedding, None, models, "fp32")
        job = replace(job, corpus=corpus and str(corpus))
        embed_text(job, Attempts(folder / "attempts.json", asked))
        return
    # DeepSpeed is set up once in a process.
    files = ["--segments", segments, "--embeddings", path, "--state", folder / path.parent.name]
    files += ["--corpus", corpus] if corpus else []
    how = ["--embedding", embedding, "--model", model, "--models", models, "--precision", "fp32"]
    script = ROOT / "workflow/scripts/embed_text.py"
    command = [python(), script, "--name", "mine", *files, *how]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (folder / "said").open("a") as said:
        said.write(done.stderr)


def write_language_model(folder):
    """A tiny language model of words with random weights, and a table that lists it as `mine`."""
    table = write_checkpoint(folder, "opt-1.3b")
    words = ["<unk>", "<s>", "</s>", *"abcdefghi"]
    made = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    specials = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **specials)
    tokenizer.save_pretrained(folder / "checkpoint")
    return table
