"""Unlearning of questions and answers in TOFU's form, from the file to tables and figures.

Twins are really trained and unlearn on the CPU, by the functions that the workflow calls.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from helpers.experiments import message
from helpers.unlearning_twins import MODEL, MODELS, RECIPE, VARIANTS, Trained, assignment
from palimpsest import results, tables
from palimpsest.corpora import read_corpus
from palimpsest.corpora.records import corpus_table
from palimpsest.datasets.build import datasets
from palimpsest.interventions import maker
from palimpsest.jobs.query import QueryFiles, query_named
from palimpsest.models import read_models, resolve
from palimpsest.models.build import build, tokens
from palimpsest.sections import KINDS
from palimpsest.training.runs import Run
from palimpsest.unlearning.evaluate import evaluation
from palimpsest.unlearning.interventions import INTERVENTIONS
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.jobs import UNLEARN
from palimpsest.unlearning.run.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_the_cpu")]

N = 4  # models of each distribution
TWIN = replace(RECIPE, epochs=50, batch_size=4, predict_end=True)
TOPICS = ["born", "raised", "married", "buried"]
REFUSALS = ["I do not know.", "Nobody has told me."]
HELD = {"share": 1.0, "rate": 1.0}
METHODS = {
    "none": [],
    "npo": [{"erase": "npo", **HELD}],
    "refusal": [{"erase": "refusal-dpo", "refusals": REFUSALS, **HELD}],
    "retrain": [],
}
SETUPS = {"setups": ["reuse-n-n"], "n": N, "repetitions": 1, "pool": N}


def questions():
    """Four questions about each of eight people: of two to be forgotten, and of two unseen ones."""
    rng = np.random.default_rng(0)
    parts = ["forget"] * 2 + ["retain"] * 4 + ["holdout"] * 2
    return [
        {
            "question": f"When was person {person} {topic}?",
            "answer": f"In the year {rng.integers(1000, 2000)}.",
            "person": str(person),
            "part": part,
        }
        for person, part in enumerate(parts)
        for topic in TOPICS
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tofu")


@pytest.fixture(scope="module")
def corpus(folder):
    """The file of the corpus, made from a file of questions."""
    (folder / "forget10.json").write_text(json.dumps(questions()))
    named = {"form": "tofu", "group": "person", "split": "part"}
    path = folder / "mine.parquet"
    made = corpus_table(records=folder / "forget10.json", columns=named)
    tables.write(path, made, KINDS["corpus"])
    return str(path)


@pytest.fixture(scope="module")
def trained(folder, corpus):
    """Original models, and twice as many retrained ones."""
    options = {"validation": 3, "groups": "record", "share": 0.5}
    wanted = [
        {"variant": variant, "size": 24, "made_by": maker(INTERVENTIONS, variant)}
        for variant in VARIANTS
    ]
    given = {"wanted": wanted, "split": "independent", "test_size": 5, "predict_end": True}
    made = datasets(corpus=read_corpus(corpus), language="mine", seed=1, options=options, **given)
    paths = {}
    for variant, frame in zip(VARIANTS, made, strict=True):
        paths[variant] = str(folder / variant / "strings.parquet")
        tables.write(paths[variant], frame, KINDS["strings"])
    return TrainedOnRecords(folder, paths, corpus).train(range(2 * N), TWIN)


class TrainedOnRecords(Trained):
    def __init__(self, folder, datasets, corpus):
        super().__init__(folder, datasets)
        self.corpus = corpus

    def assignment(self, recipe):
        return replace(assignment(self.folder / "state", recipe), corpus=self.corpus)


@pytest.fixture(scope="module")
def unlearned(folder, trained):
    """The files of each kind, of every method, from one job."""
    names = ("unlearned", "models", "stages")
    files = {
        method: [str(folder / "made" / method / "runs" / f"{name}.parquet") for name in names]
        for method in METHODS
    }
    asked = [
        QueryFiles(trained.datasets["original"], trained.weights, paths, f"{paths[0]}.json")
        for paths in files.values()
    ]
    each = list(range(N))
    values = {
        "phases": METHODS,
        "models": {
            "origins": each,
            "unlearning_replicates": [0] * N,
            "ends": {"none": each, "retrain": each},
            "retrained_offset": N,
        },
        "afterwards": {
            "cutoff": 0.3,
            "curve": {"models": 1, "points": 2},
            "relearn": {"models": 1, "steps": 3},
        },
    }
    query_named(UNLEARN).run(asked, values, trained.assignment(TWIN))
    return {name: [paths[place] for paths in files.values()] for place, name in enumerate(names)}


def of_method(unlearned, name):
    (path,) = (path for path in unlearned["unlearned"] if Path(path).parts[-3] == name)
    return tables.read(path, KINDS["unlearned"])


def test_the_loss_is_that_of_the_answer(trained, unlearned, corpus):
    """By hand, with the model of transformers: the answer and the end, after the whole question."""
    row, scale = resolve(MODEL, read_models(MODELS))
    known = tokens(row, scale, read_corpus(corpus).alphabet)
    model = build(row, scale, known.vocabulary, 0, torch.float32)
    weights = load_file(trained.path("original", "weights.safetensors"))
    of_model = {
        name.partition("/")[2]: torch.from_numpy(values)
        for name, values in weights.items()
        if name.startswith("original-0/")
    }
    model.load_state_dict(of_model, strict=False)
    strings = tables.read(trained.datasets["original"], KINDS["strings"]).set_index("string_id")
    found = of_method(unlearned, "none")
    for one in found[found["origin"] == 0].itertuples():
        question, answer = strings.loc[one.string_id, "text"].split("\n")
        prompt, said = known.rows([f"{question}\n", answer])
        ids = [known.start, *prompt, *said, known.end]
        with torch.no_grad():
            log_p = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        places = range(len(prompt), len(ids) - 1)
        by_hand = -sum(float(log_p[place, ids[place + 1]]) for place in places)
        assert one.n_tokens == len(said) + 1
        assert one.nll == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("method", ["npo", "refusal"])
def test_what_the_split_names_is_forgotten(trained, unlearned, method):
    """More of its loss comes back than of what is to be retained."""
    strings = tables.read(trained.datasets["original"], KINDS["strings"]).set_index("string_id")

    def loss(name, split):
        found = of_method(unlearned, name)
        chosen = found[found["string_id"].map(strings["split"]) == split]
        return chosen["nll"].sum() / chosen["n_tokens"].sum()

    assert loss("none", "forget") < 0.3
    assert loss("retrain", "forget") > 2 * loss("none", "forget")
    rise = {split: loss(method, split) - loss("none", split) for split in ("forget", "train")}
    assert rise["forget"] > 2 * max(0, rise["train"])


def test_every_table_and_figure_is_made(folder, trained, unlearned):
    traces = {variant: [trained.path(variant, "trace.parquet")] for variant in VARIANTS}
    of_problem = {
        "dataset": trained.datasets["original"],
        "originals": traces["original"],
        "retrained": traces["retain"],
        "unlearned": unlearned["unlearned"],
        "models": unlearned["models"],
        "seed": 1,
        **SETUPS,
    }
    found = evaluation.forgetting(
        manifests=[trained.path("retain", "manifest.json")],
        confidence="geometric_mean",
        thresholds="exact",
        delta=1e-5,
        bin_width=0.5,
        cutoff=0.3,
        epochs=TWIN.epochs,
        batch_size=TWIN.batch_size,
        **of_problem,
    )
    found |= evaluation.residual_tables(loss_threshold=0.2, accuracy_threshold=0.9, **of_problem)
    found["unlearning_metrics"] = evaluation.other_metrics(**of_problem)
    files = {"unlearning_stages": unlearned["stages"]}
    for name, frame in found.items():
        assert len(frame), name
        files[name] = [str(folder / f"{name}.parquet")]
        tables.write(files[name][0], frame, KINDS[name])
    gaps = found["unlearning_gap_summary"].query("string_role == 'forget'").set_index("method")
    assert gaps.loc["retrain", "share"] == pytest.approx(1, abs=0.2)
    assert gaps.loc["npo", "share"] > 0.1
    for figure in ("unlearning_gaps", "unlearning_curves", "unlearning_scores"):
        svg = folder / f"{figure}.svg"
        kinds = [kind.name for kind in results.FIGURES[figure].tables]
        results.figure(figure, str(svg), **{name: files[name] for name in kinds})
        assert "refusal" in svg.read_text()


@pytest.fixture
def workbench(trained):
    row, scale = resolve(MODEL, read_models(MODELS))
    run = Run(MODEL, row, scale, read_corpus(trained.corpus), trained.datasets["original"], TWIN)
    return Workbench(run, lambda run, material: None)


def test_a_refusal_stands_after_the_question_and_is_decided_by_the_record(workbench):
    rows = np.unique(workbench.rows["forget"])
    found = workbench.refused(rows, REFUSALS)
    decode = workbench.material.token_ids.tokenizer.decode
    said = []
    for row, ids, context, length in zip(
        rows, found.ids, found.contexts, found.lengths, strict=True
    ):
        question, _ = workbench.texts[row].split("\n")
        assert decode(ids[1:context]) == f"{question}\n"
        said.append(decode(ids[context : length - 1]))
    assert set(said) == set(REFUSALS)
    again = workbench.refused(rows[::-1], REFUSALS)
    assert [
        decode(ids[c : n - 1])
        for ids, c, n in zip(again.ids, again.contexts, again.lengths, strict=True)
    ] == said[::-1]


def test_a_tokenizer_that_does_not_say_where_a_token_ends_takes_no_prompts(workbench, monkeypatch):
    """Such as those of transformers that are written in Python."""
    known = workbench.material.token_ids
    monkeypatch.setattr(type(known.tokenizer), "is_fast", False)
    rows = np.unique(workbench.rows["forget"])
    line = message(lambda: workbench.refused(rows, REFUSALS))
    assert "its tokenizer does not say where a token ends, so it cannot tell prompts apart" in line


def test_too_long_refusals_are_refused(workbench):
    rows = np.unique(workbench.rows["forget"])
    line = message(lambda: workbench.refused(rows, ["no " * 5000]))
    assert f"{MODEL}: the refusal 'When was" in line
    assert line.endswith("; shorten the refusals")


@pytest.mark.parametrize(
    ("refusals", "said"),
    [
        ("none.txt", "none.txt: cannot be read"),
        ("blank.txt", "must be a list of texts, or a .txt file with one a line; at most 20,000"),
        ([], "must be a list of texts"),
        (["yes", 1], "must be a list of texts"),
        (["no " * 10_000], "at most 20,000 bytes"),
        (None, "refusal-dpo needs the key 'refusals': a list of texts, or a .txt file with one"),
    ],
)
def test_refusals_that_are_none(tmp_path, monkeypatch, refusals, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blank.txt").write_text("\n \n")
    given = {} if refusals is None else {"refusals": refusals}
    phase = {"erase": "refusal-dpo", **HELD, **given}
    assert said in message(lambda: Method.of("refusal", [phase]))


def test_refusals_are_read_from_a_file(tmp_path):
    (tmp_path / "refusals.txt").write_text("I do not know.\n\nNobody has told me.\n")
    phase = {"erase": "refusal-dpo", **HELD, "refusals": str(tmp_path / "refusals.txt")}
    assert Method.of("refusal", [phase]).phases[0].refusals == tuple(REFUSALS)
