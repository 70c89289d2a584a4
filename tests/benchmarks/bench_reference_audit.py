"""What SmolLM2 recites of texts that many people have copied, and what Gemma recites of them.

Run as a script, after `make pretrained`: `python tests/benchmarks/bench_reference_audit.py`. The
texts are passages of what is installed here: licences of packages, modules of Python's standard
library, and pages of Python's manual; and patterns, which anybody continues. The placebo is
invented texts about people, which no model has seen. The peer is the paper: Pythia 1B against
OLMo 1B.
"""

import json
import re
import string
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "workflow/scripts")]

from rows import Row, main, shown  # noqa: E402

from helpers.forks import run_snakemake  # noqa: E402
from helpers.projects import copy_of_the_project  # noqa: E402
from palimpsest.estimates import with_interval  # noqa: E402
from palimpsest.languages import Grammar  # noqa: E402
from palimpsest.statistics import Interval  # noqa: E402

TARGET, REFERENCE = "smollm2-135m-instruct", "gemma-3-270m"
PAPER = {"reference >= 0.9": 0.5239, "reference >= target": 0.3852}
LETTERS = 700  # of a passage: more than 64 tokens of any tokenizer
ALONE = dict.fromkeys(
    ["memorisation", "unlearning", "profiles", "density", "information", "records"]
)
LICENCE = re.compile(r"(licen[cs]e|copying)[^/]*$", re.IGNORECASE)


def licences() -> Iterator[tuple[str, str]]:
    """The licences of the installed packages, each text once, by the name of a package."""
    known = set()
    for package in sorted(metadata.distributions(), key=lambda one: one.metadata["Name"]):
        for file in package.files or []:
            if LICENCE.search(str(file)) and file.locate().is_file():
                text = file.locate().read_text(encoding="utf-8", errors="ignore")
                if text not in known:
                    known.add(text)
                    yield f"licence-{package.metadata['Name']}", text


def modules() -> Iterator[tuple[str, str]]:
    """The modules of the standard library, without packages."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        yield f"module-{path.stem}", path.read_text(encoding="utf-8", errors="ignore")


def manual() -> Iterator[tuple[str, str]]:
    """The pages of Python's manual that `help` shows."""
    from pydoc_data.topics import topics

    for name, text in sorted(topics.items()):
        yield f"manual-{name}", text


def patterns() -> Iterator[tuple[str, str]]:
    """Texts whose rule is plain."""
    for year in range(1990, 2022, 4):
        days = pd.date_range(f"{year}-01-01", periods=80).strftime("%Y-%m-%d")
        yield f"dates-{year}", ", ".join(f"'{day}'" for day in days)
    for start in range(0, 8000, 1000):
        yield f"numbers-{start}", ", ".join(map(str, range(start, start + 200)))
    for begin in range(0, len(string.ascii_lowercase), 4):
        word = string.ascii_lowercase[begin : begin + 4]
        yield f"words-{word}", " ".join([word] * 200)


def passages(sources: Iterator[tuple[str, str]], n: int, chance: np.random.Generator) -> list[dict]:
    """`n` records of equal length, from `n` sources if there are so many; a source is a group."""
    found = [(name, text) for name, text in sources if len(text) >= LETTERS]
    records = []
    for number, place in enumerate(np.resize(chance.permutation(len(found)), n)):
        name, text = found[place]
        begins = [match.end() for match in re.finditer(r"\n+", text[:-LETTERS])] or [0]
        begin = begins[chance.integers(len(begins))]
        passage = text[begin : begin + LETTERS]
        records.append({"id": f"{name}-{number}", "text": passage, "group": name})
    return list({record["text"]: record for record in records if record["text"].strip()}.values())


def invented(n: int) -> list[dict]:
    """Records of several invented people each, which no model has seen."""
    people = Grammar.from_file(ROOT / "config/languages/people.pcfg")
    texts = ["".join(one) for one in people.sample(8 * n, seed=5)]
    return [
        {"id": f"invented-{place}", "text": "\n".join(texts[8 * place : 8 * place + 8])}
        for place in range(n)
    ]


def write(path: Path, records: list[dict]) -> None:
    path.write_text("\n".join(map(json.dumps, records)))


def explained(n: int, models: dict[str, str], prompt: int, continuation: int) -> pd.DataFrame:
    """The table `explained` of both corpora, and the shares by category."""
    chance = np.random.default_rng(0)
    sources = {"licence": licences(), "module": modules(), "manual": manual(), "rule": patterns()}
    common = [one for found in sources.values() for one in passages(found, n, chance)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_project(folder)
        made = ROOT / "results/pretrained"
        if made.is_dir():
            (folder / "results").mkdir(exist_ok=True)
            (folder / "results/pretrained").symlink_to(made)
        write(folder / "common.jsonl", common)
        write(folder / "invented.jsonl", invented(n))
        target = {"model": models["target"], "references": {"reference": models["reference"]}}
        config = {
            **ALONE,
            "corpora": {"common": "common.jsonl", "invented": "invented.jsonl"},
            "audit": {
                "targets": {
                    corpus: {"corpus": corpus, **target} for corpus in ("common", "invented")
                },
                "attacks": [],
                "prompt": prompt,
                "continuation": continuation,
            },
        }
        (folder / "audit.json").write_text(json.dumps(config))
        words = ["--cores", "2", "audit", "--configfile", "audit.json"]
        run_snakemake(folder, [*words, "--quiet", "rules", "reason"])
        tables = folder.glob("results/audit/*/*/explained.parquet")
        found = pd.concat(map(pd.read_parquet, sorted(tables)))
        recited = pd.read_parquet(folder / "results/audit/common/common/recited.parquet")
    by_category = recited.groupby("category")[["accuracy", "accuracy_reference"]]
    print(by_category.agg(["size", "mean"]), file=sys.stderr)
    return found


def rows(tiny: bool = False) -> Iterator[Row]:
    """What is recited of both corpora, and the share of it that the reference recites, too."""
    if tiny:
        from helpers.tiny_language_models import write as write_model

        with tempfile.TemporaryDirectory() as name:
            models = {
                role: write_model(Path(name) / role, seed=seed, max_position_embeddings=1000)
                for seed, role in enumerate(("target", "reference"))
            }
            found = explained(4, models, 8, 8)
    else:
        found = explained(40, {"target": TARGET, "reference": REFERENCE}, 32, 32)
    for row in found.itertuples():
        interval = with_interval(Interval(row.value, row.lower, row.upper))
        peer = PAPER.get(row.statistic, np.nan)
        name = f"{row.language}, {row.statistic} (n = {row.n_recited}): {interval}; peer: the paper"
        yield shown(name, row.value, peer, "share", row.value / peer)


if __name__ == "__main__":
    main(rows)
