"""The block `records`: what is trained and delivered, and one line for each mistake."""

import json
from pathlib import Path

import pytest
import yaml

from helpers.experiments import configuration, experiment, laid_over, message
from helpers.projects import ROOT
from palimpsest.records import kinds
from palimpsest.records import section as records_section

TWIN = "llama-3.2-1b-twin"


# Where relative paths were looked for
SEARCHED = f"; paths begin at the folder where Snakemake runs, {ROOT}"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> Path:
    """Small files of records and of losses, and a folder that stands for a model."""
    monkeypatch.chdir(ROOT)

    def write(name: str, n: int, **columns) -> None:
        rows = [
            {"text": f"text {row}", **{key: of(row) for key, of in columns.items()}}
            for row in range(n)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))

    write("mine", 30)
    write("few", 30, group=lambda row: f"g{row % 5}")
    write("holdout", 30, split=lambda row: "holdout")
    write("two", 30, split=lambda row: "train" if row < 2 else "holdout")
    write("both", 30, split=lambda row: "train", trained=lambda row: row != 3)
    write("sides", 30, split=lambda row: "train" if row < 20 else "test", copies=lambda row: 2)
    (tmp_path / "losses.csv").write_text("id,checkpoint,loss,trained\na,0,1.5,yes\nb,0,2.5,no\n")
    (tmp_path / "model").mkdir()
    return tmp_path


def asked(files: Path, names: tuple = ("mine",), **block):
    """An experiment with nothing but records; a path that begins with ./ is in the test's folder.

    The block is one of a file of the user's, laid over the default configuration.
    """
    text = json.dumps(block).replace('"./', f'"{files}/')
    given = {
        "corpora": {name: str(files / f"{name}.jsonl") for name in names},
        "records": json.loads(text),
    }
    config = laid_over(configuration("config/config.yaml"), given)
    file = files / "my.yaml"
    file.write_text(yaml.safe_dump(given))
    return experiment(file, config=config)


def checkpoint(**values) -> dict:
    return {"tiny": {"corpus": "mine", "model": "./model", "reference": "a/b", **values}}


TRAINED = {"models": [TWIN]}


@pytest.mark.parametrize(
    ("names", "block", "said"),
    [
        (
            ("mine",),
            {"corpora": ["mien"], **TRAINED},
            "records/corpora[0]: 'mien' is not in the block corpora, which has mine (did you mean "
            "'mine'?); add it there with the file of the records",
        ),
        (
            (),
            {"corpora": ["L1"], **TRAINED},
            "records/corpora[0]: 'L1' is not in the block corpora, which has none; add it there "
            "with the file of the records",
        ),
        (
            ("mine",),
            {"checkpoints": checkpoint(corpus="its")},
            "records/checkpoints/tiny/corpus: 'its' is not in the block corpora, which has mine; "
            "add it there with the file of the records",
        ),
        (
            ("few",),
            {"corpora": ["few"], **TRAINED},
            "records/corpora[0]: few has 3 groups of records to train on, too few for 4 folds with "
            "two groups each; lower records/folds, or add records",
        ),
        (
            ("two",),
            {"corpora": ["two"], **TRAINED},
            "records/corpora[0]: two has 2 groups of records to train on, too few for 4 folds with "
            "two groups each; lower records/folds, or add records",
        ),
        (
            ("holdout",),
            {"corpora": ["holdout"], **TRAINED},
            "records/corpora[0]: {files}/holdout.jsonl: nothing can be trained on these records, "
            "because all have the split test or holdout; give some the split train, forget or "
            "retain, or leave the splits out",
        ),
        (
            ("mine",),
            {"checkpoints": {"tiny": {"corpus": "mine", "model": "./model"}}},
            "records/checkpoints/tiny: has nothing to compare its losses with; name a reference, "
            "or give some records of mine a split such as holdout, or false in the column trained",
        ),
        (
            ("holdout",),
            {"checkpoints": checkpoint(corpus="holdout")},
            "records/checkpoints/tiny/corpus: no record of holdout is said to be trained on, by "
            "its split or the column trained; give some such a split or true, or leave the column "
            "out",
        ),
        (
            ("mine",),
            {"checkpoints": checkpoint(model="./gone")},
            "records/checkpoints/tiny/model: no such folder: {files}/gone; give one as "
            "save_pretrained leaves it, a name of config/models.tsv, or a name on the Hugging Face "
            "hub",
        ),
        (  # of two mistakes, that of the model's name
            ("mine",),
            {"checkpoints": {"tiny": {"corpus": "mine", "model": "gemma-2-2c"}}},
            "records/checkpoints/tiny/model: gemma-2-2c: no such folder, and no name in "
            "config/models.tsv (did you mean 'gemma-2-2b'?); a name on the Hugging Face hub is "
            "OWNER/NAME",
        ),
        (
            ("mine",),
            {"checkpoints": checkpoint(reference="./gone")},
            "records/checkpoints/tiny/reference: no such folder: {files}/gone; give one as "
            "save_pretrained leaves it, a name of config/models.tsv, or a name on the Hugging Face "
            "hub",
        ),
        *(
            (
                ("mine",),
                {"checkpoints": checkpoint(model=model, reference=reference)},
                "records/checkpoints/tiny/reference: is the model itself; name another model",
            )
            for model, reference in [
                ("a/b", "a/b"),
                ("./model", "./model/"),
                ("smollm2-135m-instruct", "smollm2-135m-lora"),  # two rows of the table, one id
            ]
        ),
        (
            ("mine",),
            {"checkpoints": {"a b": checkpoint()["tiny"]}},
            "records/checkpoints/a b: is not a name; allowed are letters, digits, '.', '_' and '-' "
            "of ASCII, a letter or digit first, at most 100",
        ),
        (
            ("mine",),
            {"corpora": ["mine"], **TRAINED, "checkpoints": {TWIN: checkpoint()["tiny"]}},
            f"records/checkpoints/{TWIN}: is the name of a model that is trained on mine; give it "
            "another one",
        ),
        (
            ("mine",),
            {"losses": {"mine": "./losses.csv"}},
            "records/losses/mine: is the name of a corpus, too; give it another one",
        ),
        (
            ("mine",),
            {"losses": {"own": "./gone.csv"}},
            "records/losses/own: no such file: {files}/gone.csv; a table of losses is one .csv, "
            ".tsv, .jsonl, .json or .parquet file",
        ),
        (
            ("gone",),
            {"corpora": ["gone"], **TRAINED},
            "corpora/gone: no such file: {files}/gone.jsonl; a table of records is one .csv, .tsv, "
            ".jsonl, .json, .parquet or .txt file",
        ),
        (
            ("mine",),
            {"corpora": ["mine"], **TRAINED, "retrained": 5},
            "records/retrained: is 5, and records/folds is 4",
        ),
        (
            ("mine",),
            {"corpora": ["mine"], **TRAINED, "retrained": 2, "verdict": "conformal"},
            "records/corpora[0]: of the 21 groups of records of mine to train on, 2 of 4 folds "
            "have 10, too few to bound the others; 20 are needed: raise records/retrained, lower "
            "records/folds, or add records",
        ),
        (
            ("mine",),
            {"corpora": ["mine"], **TRAINED, "verdict": "conformal"},
            "records/verdict: conformal bounds the records of folds that no model is trained "
            "without, and there are none; set records/retrained below records/folds",
        ),
        (
            ("mine",),
            {"checkpoints": checkpoint(), "verdict": "conformal"},
            "records/verdict: conformal needs losses without some of the records, and checkpoints "
            "have none; leave them out, or give a table in records/losses (docs/records.md)",
        ),
        (
            ("mine",),
            {"corpora": ["mine"], "models": ["llama-3.2-1b-twni"]},
            "(did you mean 'llama-3.2-1b-twin'?)",
        ),
    ],
)
def test_a_mistake_is_one_line(files, names, block, said):
    found = message(lambda: asked(files, names, **block))
    assert said.format(files=files) in found
    assert found.startswith(f"{files / 'my.yaml'}: ")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"corpora": {"mine": {"file": "gone.jsonl"}}}, "corpora/mine: no such file: gone.jsonl; "),
        (
            {"records": {"checkpoints": checkpoint(model="gone/")}},
            "records/checkpoints/tiny/model: no such folder: gone/; ",
        ),
        (
            {"records": {"checkpoints": checkpoint(model="a/c", reference="../gone")}},
            "records/checkpoints/tiny/reference: no such folder: ../gone; ",
        ),
        (
            {"records": {"losses": {"own": "gone.csv"}}},
            "records/losses/own: no such file: gone.csv; ",
        ),
    ],
)
def test_a_path_that_is_not_found_says_where_it_was_looked_for(files, given, key):
    config = laid_over(
        configuration("config/config.yaml"),
        {"corpora": {"mine": str(files / "mine.jsonl")}, "records": {}, **given},
    )
    found = message(lambda: experiment("config/config.yaml", config=config))
    assert key in found
    assert found.endswith(SEARCHED)


def test_records_that_contradict_themselves_are_refused(files):
    found = message(lambda: asked(files, ("both",), corpora=["both"], **TRAINED))
    assert "the record '4' is of the split train and not trained on; mend the row" in found


def test_few_groups_are_enough_where_nothing_is_trained(files):
    block = {"corpora": ["few"], "models": [], "checkpoints": checkpoint(corpus="few")}
    assert asked(files, ("few",), **block).outputs["records"]


def test_a_corpus_has_a_training_for_all_records_and_one_without_each_fold(files):
    made = asked(files, ("sides",), corpora=["sides"], folds=3, **TRAINED)
    runs = list(records_section.requests(made.settings))
    assert [run.variant for run in runs] == [
        "records",
        *(f"records-without-{fold}-of-3" for fold in range(3)),
    ]
    assert {run.size for run in runs} == {40}  # 20 records, twice each
    assert {run.model for run in runs} == {TWIN}
    assert {run.seeds for run in runs} == {made.settings.seeds}


def test_each_source_has_its_answers_and_all_have_one_table(files):
    made = asked(
        files,
        ("mine", "sides", "few"),
        corpora=["mine"],
        losses={"own": "./losses.csv"},
        checkpoints={
            "one": checkpoint()["tiny"],
            "two": {"corpus": "sides", "model": "./model"},
        },
        **TRAINED,
    )
    assert records_section.sources(made.settings) == ["mine", "sides", "own"]
    assert sorted(made.outputs["records"]) == sorted(
        [
            *(kinds.ANSWERS.path.format(language=name) for name in ("mine", "sides", "own")),
            *(kinds.SHARES.path.format(language=name) for name in ("mine", "sides", "own")),
            kinds.RECORDS.path,
            kinds.AS_CSV,
        ]
    )


def test_a_name_of_the_table_of_models_stands_for_its_id(files):
    made = asked(
        files, checkpoints=checkpoint(model="llama-3.2-1b", reference="openai-community/gpt2")
    )
    (found,) = records_section.checkpoints(made.settings).values()
    assert found.model == made.settings.models["llama-3.2-1b"].id != "llama-3.2-1b"
    assert found.reference == "openai-community/gpt2"


def test_nothing_is_asked_for_by_default(files):
    made = asked(files, ())
    assert not list(records_section.outputs(made.settings))
    assert not list(records_section.requests(made.settings))


def few(n):
    return (
        f"mine has {n} never trained on; with fewer than 19, no p-value can be 0.05 or less "
        "(records/false_alarms), so no record can be detected; give more records that are not "
        "trained on"
    )


def notes(made) -> list[str]:
    return [note.partition("my.yaml: ")[2] for note in made.notes if "detected" in note]


def test_too_few_unseen_records_are_said_before_anything_is_trained(files):
    """30 records, of which 9 are held out; then with all that a p-value of 0.05 needs."""
    trained = {"corpora": ["mine"], **TRAINED}
    assert notes(asked(files, **trained)) == [f"records/corpora[0]: {few('9 records')}"]
    assert not notes(asked(files, **trained, false_alarms=0.1))
    assert not notes(asked(files, **trained, holdout=0.64))
    assert notes(asked(files, **trained, holdout=0.6)) == [
        f"records/corpora[0]: {few('18 records')}"
    ]
    # Said once of a corpus that is trained on and asked about
    both = notes(asked(files, **trained, checkpoints=checkpoint()))
    assert both == [f"records/corpora[0]: {few('9 records')}"]


def test_it_is_said_of_a_checkpoint_as_well(files):
    assert notes(asked(files, checkpoints=checkpoint())) == [
        f"records/checkpoints/tiny/corpus: {few('0 records')}"
    ]
    sides = asked(files, ("sides",), checkpoints=checkpoint(corpus="sides"))
    assert [note.count("sides has 10 records") for note in notes(sides)] == [1]
    assert not notes(asked(files, ("two",), checkpoints=checkpoint(corpus="two")))  # 28 records


def test_intervals_are_asked_for_by_a_verdict_and_fewer_trainings(files):
    """Three trainings instead of five, and one more table for each name."""
    write = [{"text": f"text {row}"} for row in range(80)]
    (files / "many.jsonl").write_text("\n".join(map(json.dumps, write)))
    block = {"corpora": ["many"], **TRAINED, "losses": {"own": "./losses.csv"}}
    usual = asked(files, ("many",), **block)
    found = asked(files, ("many",), **block, retrained=2, verdict="conformal")
    counts = [sum(runs.corpus == "many" for runs in one.requests) for one in (usual, found)]
    assert counts == [5, 3]
    more = set(found.outputs["records"]) - set(usual.outputs["records"])
    assert more == {f"results/records/{name}/conformal.parquet" for name in ("many", "own")}
