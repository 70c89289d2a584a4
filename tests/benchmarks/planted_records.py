"""Records of `people` that are planted with one, two and eight copies, and twins trained on them.

A third of the records that are trained on have one copy, a third two and a third eight; as many
again are never trained on.
"""

import json
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

from helpers.forks import run_snakemake  # noqa: E402
from helpers.projects import copy_of_the_project  # noqa: E402
from palimpsest.corpora import read_corpus  # noqa: E402
from palimpsest.corpora.records_corpus import RecordsCorpus  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.paths import CORPUS_OF_RECORDS, MODEL_FOLDER, fill  # noqa: E402
from palimpsest.records.interventions import ALL  # noqa: E402
from palimpsest.requests import Runs  # noqa: E402

GRAMMAR = ROOT / "config/languages/people.pcfg"
NAME, FILE, MODEL, COPIES = "mine", "people.jsonl", "llama-3.2-1b-twin", (1, 2, 8)
ALONE = dict.fromkeys(["memorisation", "unlearning", "profiles", "density", "information"])
BLOCK = {"corpora": [NAME], "models": [MODEL]}


class PlantedRecords:
    """A project in a folder of its own, with the records and a recipe of twins.

    Parameters
    ----------
    n_trained : the number of records to train on
    recipe : the keys of the recipe that differ from the default one
    """

    def __init__(self, folder: Path, n_trained: int, seeds: Sequence[int], **recipe):
        self.folder, self.n_trained, self.seeds = folder, n_trained, tuple(seeds)
        self.config = {
            **ALONE,
            "seeds": list(seeds),
            "save_weights": "huggingface",
            "corpora": {NAME: FILE},
            "recipes": {"default": recipe},
        }
        copy_of_the_project(folder)
        self._write_records()

    def _write_records(self) -> None:
        """Distinct texts of `people`; half of them are held out."""
        samples = Grammar.from_file(GRAMMAR).sample(4 * self.n_trained, seed=1)
        texts = list(dict.fromkeys("".join(string) for string in samples))
        with (self.folder / FILE).open("w") as file:
            for number, text in enumerate(texts[: 2 * self.n_trained]):
                trained = number < self.n_trained
                record = {
                    "id": str(number),
                    "text": text,
                    "split": "train" if trained else "holdout",
                    "copies": COPIES[number % 3] if trained else 1,
                }
                file.write(json.dumps(record) + "\n")

    @cached_property
    def records(self) -> pd.DataFrame:
        """The id, the text, and the copies of each record; 0 if it is never trained on."""
        given = pd.read_json(self.folder / FILE, lines=True, dtype={"id": str})
        given["copies"] = given["copies"].where(given["split"] == "train", 0)
        return given[["id", "text", "copies"]]

    @property
    def corpus(self) -> RecordsCorpus:
        """The records as the project reads them, after a run."""
        return read_corpus(self.folder / fill(CORPUS_OF_RECORDS, language=NAME))

    @property
    def n_copies(self) -> int:
        """The number of training strings, with their copies."""
        return int(self.records["copies"].sum())

    def models(self, variant: str = ALL) -> list[str]:
        """The folders of the models of all seeds, trained on all records or without a fold."""
        return Runs(MODEL, NAME, self.n_copies, variant, self.seeds).paths(MODEL_FOLDER)

    def run(self, *targets: str, **records) -> None:
        """Run Snakemake on two cores; `records` are further keys of the block of this name."""
        config = {**self.config, "records": {**BLOCK, **records}}
        (self.folder / "planted.json").write_text(json.dumps(config))
        words = ["--cores", "2", *targets]
        words += ["--configfile", "planted.json", "--quiet", "rules", "reason"]
        run_snakemake(self.folder, words)
