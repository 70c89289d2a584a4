"""A dataset as a folder for other programs: tables, a card, Croissant, and tasks of lm-eval.

`README.md` is the card, with a head in YAML that the library `datasets` and hubs read.
`croissant.json` describes the files and their columns in JSON-LD. `lm-eval` has a task of the
Language Model Evaluation Harness for each split.

Source: the Croissant format specification, version 1.0 (MLCommons, 2024).
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import yaml

from palimpsest import __version__, tables
from palimpsest.cards import card, table
from palimpsest.datasets.kinds import STRINGS
from palimpsest.languages import Grammar
from palimpsest.making import reads
from palimpsest.models.alphabets import special_text

GRAMMAR_SUFFIX = ".pcfg"
CARD, CROISSANT, DATA, TASKS = "README.md", "croissant.json", "data", "lm-eval"
GRAMMAR = f"grammar{GRAMMAR_SUFFIX}"
TASK = "palimpsest_{language}_{split}"
# In this order; those without any value are left out.
COLUMNS = ("string_id", "text", "count", "test_count", "group", "role", "cohort")
COLUMNS += ("log_prob", "optimal_loss")
ALWAYS = ("string_id", "text")
PARQUET = "application/x-parquet"
TYPES = {"str": "sc:Text", "int": "sc:Integer", "float": "sc:Float"}
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
# Words of the context, as the specification prints it
OF_CROISSANT = (
    "citeAs column extract field fileProperty fileObject fileSet format includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace separator "
    "source subField transform"
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{word: f"cr:{word}" for word in OF_CROISSANT.split()},
}
NO_LICENCE = (
    "Palimpsest does not know under which licence the strings may be handed on. Add it here and to "
    "`croissant.json`, as `license`, before you do; records of people may not be handed on at all."
)
NOT_FOR = (
    "Strings of the training set must not be used to say how well a model trained on them predicts "
    "in general. Which strings a model was trained on is known here, and only for models of this "
    "experiment: to a model from elsewhere, all of them may be new, or none."
)


@reads(strings=STRINGS)
def export_dataset(
    folder: str | Path,
    strings: pd.DataFrame,
    corpus: str,
    *,
    language: str,
    size: int,
    seed: int,
    variant: str,
    predict_end: bool,
) -> None:
    """Write a dataset as a folder, which appears when it is complete.

    Parameters
    ----------
    folder : the folder to write; an older one is replaced
    strings : a table of kind `strings`
    corpus : the file of the grammar, or of a text or records
    language, size, seed, variant : of the dataset
    predict_end : whether models learn where a string ends; strings of symbols then have an end
        token in the tasks of lm-eval

    Raises `UserError` if the folder cannot be written.
    """
    named = {"language": language, "size": size, "seed": seed, "variant": variant}
    grammar = Grammar.from_file(corpus) if corpus.endswith(GRAMMAR_SUFFIX) else None
    names = [name for name in COLUMNS if name in ALWAYS or strings[name].notna().any()]
    first = sorted(strings["split"].unique(), key=lambda split: (split != "train", split))
    splits = {split: strings.loc[strings["split"] == split, names] for split in first}
    with tables.replacing_folder(folder) as temporary:
        made = Path(temporary)
        (made / DATA).mkdir()
        (made / TASKS).mkdir()
        if grammar:
            shutil.copyfile(corpus, made / GRAMMAR)
        end = ""
        if grammar and predict_end and not grammar.is_text:
            end = f" {special_text('end', grammar.terminals)}"
        for split, rows in splits.items():
            rows.to_parquet(_data(made, split), index=False)
            _write_task(made / TASKS, named, split, rows["text"] + end)
        tables.write_json(made / CROISSANT, croissant(made, named, splits))
        (made / CARD).write_text(dataset_card(named, splits, grammar), encoding="utf-8")


def _data(folder: Path, split: str) -> Path:
    return folder / DATA / f"{split}.parquet"


def _name(named: Mapping) -> str:
    return "{language}, {size} training strings, seed {seed}, {variant}".format(**named)


def _write_task(folder: Path, named: Mapping, split: str, texts: Iterable[str]) -> None:
    """One task of lm-eval: the loss of the texts, each without what is before it."""
    task = TASK.format(language=named["language"], split=split)
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    content = {
        "task": task,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{split}.jsonl"}},
        "test_split": "test",
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{text}}",
        "metric_list": [{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
        "metadata": {"version": 1.0, "dataset": _name(named)},
    }
    (folder / f"{task}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def croissant(folder: Path, named: Mapping, splits: Mapping[str, pd.DataFrame]) -> dict:
    """The description of the files in a folder in Croissant, a form of JSON-LD."""
    kinds = {column.name: column for column in STRINGS.columns}
    files, record_sets = [], []
    for split, rows in splits.items():
        path = _data(folder, split)
        place = path.relative_to(folder).as_posix()
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": f"{split}-file",
                "name": f"{split}-file",
                "contentUrl": place,
                "encodingFormat": PARQUET,
                "contentSize": f"{path.stat().st_size} B",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{split}/{name}",
                "name": f"{split}/{name}",
                "description": kinds[name].meaning,
                "dataType": TYPES[kinds[name].type],
                "source": {
                    "fileObject": {"@id": f"{split}-file"},
                    "extract": {"column": name},
                },
            }
            for name in rows
        ]
        record_sets.append(
            {"@type": "cr:RecordSet", "@id": split, "name": split, "field": fields}
            | {"description": f"One record per distinct string of the split {split}."}
        )
    name = "-".join(str(named[part]) for part in ("language", "size", "seed", "variant"))
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": f"palimpsest-{name}",
        "description": f"Strings on which models of an experiment are trained: {_name(named)}.",
        "version": __version__,
        "datePublished": datetime.now(UTC).date().isoformat(),
        "distribution": files,
        "recordSet": record_sets,
    }


def dataset_card(
    named: Mapping, splits: Mapping[str, pd.DataFrame], grammar: Grammar | None = None
) -> str:
    """The card of a dataset; `grammar` is that of its language, if it has one."""
    files = [{"split": split, "path": f"{DATA}/{split}.parquet"} for split in splits]
    head = {
        "pretty_name": _name(named),
        "task_categories": ["text-generation"],
        "size_categories": [_size(sum(map(len, splits.values())))],
        "tags": ["palimpsest", "memorisation", named["language"]],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    origin = "Records or a text of somebody's own; their probabilities are not known."
    if grammar:
        origin = (
            f"Strings sampled by the grammar in `{GRAMMAR}`, so that the exact probability of each "
            "is known: `log_prob` (nats), and `optimal_loss`, the lowest loss that any model can "
            "have on average (nats per token, or per byte of a text)."
        )
    rows = [(split, len(found), int(found["count"].sum())) for split, found in splits.items()]
    columns = [(f"`{one.name}`", one.meaning) for one in STRINGS.columns]
    shown = {f"`{name}`" for found in splits.values() for name in found}
    task = TASK.format(language=named["language"], split=next(iter(splits)))
    parts = [
        f"# {_name(named)}",
        origin,
        table(["split", "distinct strings", "copies in the training set"], rows),
        table(["column", "meaning"], (row for row in columns if row[0] in shown)),
        "## The loss of any model, by another program",
        f"```\ncd {TASKS}\nlm_eval --model hf --model_args pretrained=MODEL,add_bos_token=False "
        f"--include_path . --tasks {task}\n```",
        "The harness puts a start token before each string by itself; without "
        "`add_bos_token=False` a tokenizer that does so, too, gives a second one. "
        "`word_perplexity` is the exponential of the mean loss per symbol, in nats, where strings "
        "are symbols with blanks between them.",
        "## Licence",
        NO_LICENCE,
        "## What it must not be used for",
        NOT_FOR,
    ]
    return card(head, parts)


def _size(n: int) -> str:
    """The category of a number of rows, as hubs write it."""
    if n < 1000:
        return "n<1K"
    units = ["1K", "10K", "100K", "1M", "10M", "100M", "1B"]
    place = min(int(math.log10(n)) - 3, len(units) - 2)
    return f"{units[place]}<n<{units[place + 1]}"
