"""Write the licences of a Debian system as a corpus, and sets of queries that are near or far.

    python examples/licences.py licences
    make pretrained
    snakemake --cores all density --configfile licences/licences.yaml

The sets, 200 queries each or fewer: `own` are segments of the corpus; `replaced` are the same with
5 of 50 words replaced by random words of the corpus; `shuffled` are the same with their words in
random order; `packages` are descriptions of the system's packages; `questions` are those of
config/records/python_questions.jsonl, and their responses the names of modules.
"""

import argparse
import json
import random
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from palimpsest.density.segments import segmented  # noqa: E402

LICENCES, PACKAGES = Path("/usr/share/common-licenses"), Path("/var/lib/dpkg/status")
QUESTIONS = ROOT / "config/records/python_questions.jsonl"
N_QUERIES, N_WORDS, N_REPLACED = 200, 50, 5
OTHER_SECTIONS = ("memorisation", "unlearning", "profiles", "information", "records", "audit")
DESCRIPTION = re.compile(r"^Description: .*\n((?: .*\n?)+)", re.MULTILINE)


def descriptions() -> list[str]:
    """The first words of the descriptions of packages that have 30 words or more."""
    found = set()
    for package in PACKAGES.read_text().split("\n\n"):
        if match := DESCRIPTION.search(package):
            lines = (line.strip() for line in match[1].splitlines())
            words = " ".join(line for line in lines if line and line != ".").split()
            if len(words) >= 30:
                found.add(" ".join(words[:N_WORDS]))
    return sorted(found)


def questions() -> list[dict[str, str]]:
    """Questions with their choices, and the right one as the response."""
    rows = map(json.loads, QUESTIONS.read_text().splitlines())
    return [
        {
            "text": f"{row['question']} {', '.join(row['choices'][:-1])} or {row['choices'][-1]}?",
            "response": row["choices"][row["answer"]],
        }
        for row in rows
    ]


def replaced(words: list[str], corpus: list[str], chance: random.Random) -> list[str]:
    """Words, some of them in random places replaced by words of the corpus."""
    others = list(words)
    for place in chance.sample(range(len(words)), N_REPLACED):
        others[place] = chance.choice(corpus)
    return others


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the files are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)

    def write(name: str, rows: list[dict[str, str]]) -> str:
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    files = sorted(path for path in LICENCES.iterdir() if not path.is_symlink())
    corpus = write("corpus", [{"text": path.read_text(errors="replace")} for path in files])
    segments = segmented(corpus, N_WORDS, 40).corpus.strings
    whole = [list(segment) for segment in segments if len(segment) == N_WORDS]
    own = chance.sample(whole, N_QUERIES)
    words = [word for segment in whole for word in segment]
    sets = {
        "own": own,
        "replaced": [replaced(each, words, chance) for each in own],
        "shuffled": [chance.sample(each, len(each)) for each in own],
    }
    found = descriptions()
    rows = {
        name: [{"text": " ".join(each)} for each in each_set] for name, each_set in sets.items()
    }
    rows["packages"] = [{"text": text} for text in chance.sample(found, min(N_QUERIES, len(found)))]
    rows["questions"] = questions()
    config = {
        "density": {
            "leakage": None,
            "support": None,
            "approximation": {"k": 20, "m1": 600, "m2": 200, "index": "exact", "exact": True},
            "texts": {
                "licences": {
                    "corpus": corpus,
                    "queries": {name: write(name, own_rows) for name, own_rows in rows.items()},
                    "model": "smollm2-135m-instruct",
                    "embedding": "all-minilm-l6-v2",
                }
            },
        },
        **dict.fromkeys(OTHER_SECTIONS),
    }
    (folder / "licences.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    print(f"{len(segments)} segments of {len(files)} licences in {folder}")


if __name__ == "__main__":
    main()
