"""What references explain, by hand; categories; and an audit from a file to its tables."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM

from helpers.continuations import continuation
from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.records import corpus as corpus_of
from helpers.tiny_language_models import write
from palimpsest import tables
from palimpsest.audit.asking import AuditJob, audit_target
from palimpsest.audit.detectors import detected
from palimpsest.audit.extraction import extracted_records
from palimpsest.audit.findings import findings
from palimpsest.audit.interventions import MEMBERS
from palimpsest.audit.kinds import (
    CONTINUATIONS,
    DETECTORS,
    EPSILON,
    EXPLAINED,
    EXTRACTED,
    EXTRACTION,
    OF_RECITING,
    PASSES,
    RECITED,
    ROC,
    SCORES,
)
from palimpsest.audit.members import members
from palimpsest.audit.references import category, explained, with_accuracies
from palimpsest.audit.report import part
from palimpsest.audit.tables import roc_table, scores
from palimpsest.corpora import read_corpus
from palimpsest.corpora.kinds import CORPUS
from palimpsest.datasets.build import DatasetRequest
from palimpsest.datasets.sampling import Sampler
from palimpsest.models.checkpoints import opened
from palimpsest.training.attempts import Attempts


def row(name, role, n_right, trained=True, text="goes on so"):
    texts = {"prompt": "It ", "continuation": text, "generated": text}
    return continuation(name, n_right, role, trained, **texts)


def explained_of(rows):
    """What references explain, of records among which there is no duplicate."""
    return explained(with_accuracies(pd.DataFrame(rows)).assign(duplicate=False, private=None))


def test_shares_by_hand():
    """Of three recited records, the reference recites one mostly, and two as well or better."""
    rows = [
        *(row("a", role, n) for role, n in (("target", 9), ("other", 9))),
        *(row("b", role, n) for role, n in (("target", 10), ("other", 2))),
        *(row("c", role, n) for role, n in (("target", 9), ("other", 10))),
        *(row("d", role, n) for role, n in (("target", 5), ("other", 10))),
        *(row("e", role, n, False) for role, n in (("target", 10), ("other", 10))),
    ]
    found = explained_of(rows)
    recited, shares = found[RECITED.name], found[EXPLAINED.name]
    assert recited["id"].tolist() == ["a", "b", "c", "e"]
    wide = shares.pivot(index="side", columns="statistic", values="value")
    assert wide.loc["trained"].to_dict() == {
        "recited": 3 / 4,
        "reference >= 0.9": 2 / 3,
        "reference >= target": 2 / 3,
    }
    assert (wide.loc["unseen"] == 1).all()
    assert (shares["lower"] <= shares["value"]).all()
    assert (shares["value"] <= shares["upper"]).all()


def test_nothing_is_recited():
    rows = [row("a", role, 3) for role in ("target", "other")]
    shares = explained_of(rows)[EXPLAINED.name].set_index("statistic")
    assert shares.loc["recited", "value"] == 0
    assert np.isnan(shares.loc["reference >= target", "value"])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (", '2014-07-22', '2014-07-23', '2014-07-24', '2014-07-25', '2014-07-26'", "pattern"),
        ("is subject to the terms of the Mozilla Public License v. 2.0", "common"),
        ("def forward(self, x):\n    return self.layer(x)", "code"),
        ("and Ann moved from Lund to the coast in spring", "other"),
    ],
)
def test_categories(text, kind):
    assert category(text) == kind


# Sides follow no digit: otherwise members would have smaller or even numbers, and differ in kind.
RECORDS = [
    {
        "id": f"r{number}",
        "text": f"Ann number {number} was born in Lund.",
        "trained": number.bit_count() % 2 == 0,
    }
    for number in range(28)
]


def attempts_in(folder) -> Attempts:
    return Attempts(folder / "note.json", {"micro_batch_size": 1, "evaluation_batch_size": 4})


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    """The tables of an audit of a tiny model, with a reference of the same tokenizer."""
    folder = tmp_path_factory.mktemp("audit")
    frame = pd.DataFrame(RECORDS).assign(group=[row["id"] for row in RECORDS], copies=1)
    frame["trained"] = frame["trained"].astype("boolean")
    tables.write(folder / "mine.parquet", frame.reindex(columns=CORPUS.names), CORPUS)
    job = AuditJob(
        "mine",
        "tiny",
        str(folder / "mine.parquet"),
        str(folder / "passes.parquet"),
        str(folder / "continuations.parquet"),
        write(folder / "model"),
        [("other", write(folder / "reference", seed=1))],
        [
            *("loss", "zlib", "reference", "neighbours", "recall", "lowercase", "ez_mia", "rmia"),
            "exposure",
        ],
        prompt=4,
        continuation=4,
        neighbours=2,
        prefixes=1,
        secrets=3,
        state=str(folder),
    )
    audit_target(job, attempts_in(folder))
    passes = tables.read(job.passes, PASSES)
    records = tables.read(job.corpus, CORPUS)
    made = scores(passes, records, attacks=job.attacks)
    tables.write(folder / "scores.parquet", made, SCORES)
    made = tables.read(folder / "scores.parquet", SCORES)
    return job, passes, made, tables.read(job.continuations, CONTINUATIONS)


def test_the_same_audit_asks_no_model_again(audit, tmp_path, monkeypatch):
    job, passes, _, continuations = audit
    monkeypatch.setattr("palimpsest.audit.measuring._predicted", None)
    files = {name: str(tmp_path / name) for name in ("passes", "continuations")}
    audit_target(AuditJob(**{**vars(job), **files}), attempts_in(tmp_path))
    pd.testing.assert_frame_equal(tables.read(files["passes"], PASSES), passes)
    pd.testing.assert_frame_equal(tables.read(files["continuations"], CONTINUATIONS), continuations)


def test_an_audit_has_all_attacks(audit):
    _, passes, made, _ = audit
    assert set(made["attack"]) == {
        *("loss", "zlib", "neighbours", "recall", "lowercase", "exposure"),
        *("reference/other", "ez_mia/other", "rmia/other", "combined", "blind"),
    }
    n = made.groupby("attack").size()
    assert n.pop("recall") == 27, "what stands before others has no score"
    assert n.eq(28).all()
    assert dict(passes.groupby("role").size()) == {"target": 28 * (1 + 2 + 1 + 4) + 27, "other": 28}


def test_the_report_of_an_audit(audit, tmp_path):
    """A model of random weights never saw a record: no attack finds more than by chance."""
    job, _, made, continuations = audit
    roc = roc_table(made, false_positive_rates=[0.1])
    tables.write(tmp_path / "roc.parquet", roc, ROC)
    assert set(roc["statistic"]) == {"auc", "tpr@0.1"}
    by_chance = roc["statistic"].map({"auc": 0.5, "tpr@0.1": 0.1})
    assert (roc["lower"] <= by_chance).all()
    copies = (str(tmp_path / name) for name in ("findings.csv", "findings.json"))
    records = tables.read(job.corpus, CORPUS)
    found = findings(continuations, records, *copies, show_secrets=False)
    for kind in OF_RECITING:
        tables.write(tmp_path / kind.name, found[kind.name], kind)
    words = part({ROC.name: roc, **found})
    text = "".join(f"{chapter.before} {chapter.after}" for chapter in words.chapters)
    assert "14 / 14" in text
    assert not part({}).introduction


def answers_of_seeds(n_seeds):
    """Losses by training again; with the first seed, the target knows the records trained on."""
    rows = [
        {
            **{"language": "mine", "model": model, "measure": measure, "evidence": "retraining"},
            **{"id": record["id"], "seed": seed, "loss": 0.1 if record["trained"] else 2.0},
            "threshold": 1.9 + 0.1 * seed if measure == "counterfactual" else 0.0,
        }
        for seed in range(n_seeds)
        for model in ("mine", "another")
        for measure in ("counterfactual", "contextual")
        for record in RECORDS
    ]
    return pd.DataFrame(rows)


def test_lira_from_models_of_other_seeds(audit):
    """Each is judged by the models of other seeds without it; of three other seeds, none is."""
    job, passes, _, _ = audit
    records = tables.read(job.corpus, CORPUS)
    ask = {"attacks": ["loss", "lira"], "retrained": "mine", "seed": 0}
    made = scores(passes, records, [answers_of_seeds(5)], **ask)
    found = made[made["attack"] == "lira"].set_index("id")["score"]
    logit = {loss: -np.log(np.expm1(loss)) for loss in (0.1, 2.0, 2.1, 2.2, 2.3)}
    others = [logit[loss] for loss in (2.0, 2.1, 2.2, 2.3)]
    for record in RECORDS:
        own = logit[0.1 if record["trained"] else 2.0]
        expected = (own - np.mean(others)) / np.std(others, ddof=1)
        assert found[record["id"]] == pytest.approx(expected, rel=1e-4)
    too_few = scores(passes, records, [answers_of_seeds(4)], **ask)
    assert "lira" not in {*too_few["attack"]}


def test_the_detectors_of_an_audit(audit, tmp_path):
    """A model of random weights gives nothing away, and no detector finds more than by chance."""
    _, _, made, continuations = audit
    extracted = extracted_records(continuations)
    assert extracted[EXTRACTION.name].query("decoding == 'greedy'")["share"].eq(0).all()
    found = detected(
        made,
        extracted[EXTRACTED.name],
        pd.DataFrame(RECORDS).assign(copies=1),
        [],
        retrained=None,
        seed=None,
        coin=True,
        false_positive_rates=[0.1],
    )
    tables.write(tmp_path / "detectors.parquet", found, DETECTORS)
    recall = found[(found["statistic"] == "recall") & (found["copies"] == 0)]
    assert {*recall["detector"]} == {
        *made["attack"],
        *("greedy", "greedy/other", "longest span", "(n, p)"),
    }
    assert (recall["lower"] <= 0.35).all()  # 0.1 may be 0.34 in general: 1 of 14 others
    assert not (found["statistic"] == EPSILON).any()  # no pairs


@pytest.mark.parametrize("rounded", [False, True])
def test_a_reference_with_the_weights_of_the_target_is_refused(audit, tmp_path, rounded):
    """Also if it was saved in another number format."""
    job, *_ = audit
    again = str(shutil.copytree(job.model, tmp_path / "again"))
    if rounded:
        AutoModelForCausalLM.from_pretrained(again, dtype=torch.float16).save_pretrained(again)
    same = AuditJob(**{**vars(job), "reference": [("again", again)], "attacks": ["loss"]})
    said = message(lambda: audit_target(same, attempts_in(tmp_path)))
    assert "one model under two names" in said


def test_records_that_are_too_short_for_a_continuation(audit, tmp_path):
    job, *_ = audit
    long = AuditJob(**{**vars(job), "prompt": 100})
    tokenizer = opened(job.model).tokenizer
    texts = read_corpus(job.corpus).records.whole_texts
    longest = max(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts)
    said = message(lambda: audit_target(long, attempts_in(tmp_path)))
    assert f"; the longest has {longest}: lower audit/prompt" in said


@pytest.mark.parametrize(
    ("positions", "said"),
    [(250, ""), (80, "are used"), (30, "attacks that need them are left out")],
)
def test_as_many_records_stand_before_others_as_the_target_takes(
    audit, tmp_path, caplog, positions, said
):
    """Not an error that names a record which nobody wrote."""
    job, *_ = audit
    model = write(tmp_path / "model", max_position_embeddings=positions)
    files = {name: str(tmp_path / name) for name in ("passes", "continuations")}
    alone = {"reference": [], "attacks": ["loss", "recall"], "state": None, "prefixes": 7}
    alone |= {"model": model}
    audit_target(AuditJob(**{**vars(job), **files, **alone}), attempts_in(tmp_path))
    assert said in caplog.text
    assert ("audit/prefixes" in caplog.text) == bool(said)
    passes = tables.read(files["passes"], PASSES)
    assert (passes["version"] == "prefixed").any() == (positions > 30)


def test_records_that_are_too_short_are_counted(audit, tmp_path, caplog):
    """They are attacked, and not continued: those of one digit have a letter less."""
    job, *_ = audit
    checkpoint = opened(job.model)
    lengths = [
        len(ids) for ids in checkpoint.tokenizer([row["text"] for row in RECORDS])["input_ids"]
    ]
    files = {name: str(tmp_path / name) for name in ("passes", "continuations")}
    alone = {"reference": [], "attacks": ["loss"], "state": None}
    alone |= {"prompt": max(lengths) - 1, "continuation": 1}
    audit_target(AuditJob(**{**vars(job), **files, **alone}), attempts_in(tmp_path))
    n_short = sum(length < max(lengths) for length in lengths)
    assert 0 < n_short < 28
    assert f"{n_short} of 28 records of mine have fewer than" in caplog.text
    assert len(tables.read(files["continuations"], CONTINUATIONS)) == 28 - n_short


def test_without_records_that_are_known_there_is_no_roc(audit):
    _, passes, *_ = audit
    records = pd.DataFrame(RECORDS)
    nobody = passes.assign(trained=np.array([None] * len(passes), dtype=object))
    made = scores(nobody, records, attacks=["loss", "rmia", "recall"])
    assert set(made["attack"]) == {"loss", "recall"}
    assert roc_table(made, false_positive_rates=[0.1]).empty


def test_where_labels_follow_sources_nothing_is_learned(audit):
    """All other attacks have scores, and a value without an interval."""
    _, passes, *_ = audit
    sources = passes.assign(group=passes["trained"].map({True: "A", False: "B"}))
    made = scores(sources, pd.DataFrame(RECORDS), attacks=["loss"])
    assert set(made["attack"]) == {"loss"}
    found = roc_table(made, false_positive_rates=[0.1]).set_index("statistic")
    assert 0 < found.loc["auc", "value"] < 1
    assert found[["lower", "upper"]].isna().all(axis=None)


def test_attacks_that_need_what_there_is_not_have_no_scores(audit):
    _, passes, *_ = audit
    alone = passes[passes["role"] == "target"]
    made = scores(alone, pd.DataFrame(RECORDS), attacks=["reference", "rmia", "ez_mia"])
    assert list(made.columns) == SCORES.names
    assert made.empty
    assert roc_table(made, false_positive_rates=[0.1]).empty


def asked(**target):
    one = {"corpus": "mine", "model": "a/b", **target}
    return {"audit": {"targets": {"tuned": one}}, "corpora": {"mine": "mine.jsonl"}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"corpus": "mien"}, "'mien' is not in the block corpora, which has mine (did you mean"),
        ({"model": "./nowhere/"}, "no such folder: ./nowhere/"),
        ({"references": {"same": "a/b"}}, "is the target itself; name another model"),
        ({"references": {"target": "a/c"}}, "'target' cannot be its name"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, given, said):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, RECORDS)))
    monkeypatch.chdir(ROOT)
    over = asked(**given)
    over["corpora"]["mine"] = str(path)
    assert said in message(lambda: experiment(DEFAULT, command_line=over))


def test_an_unknown_attack(monkeypatch):
    monkeypatch.chdir(ROOT)
    over = {"audit": {"attacks": ["loss", "mink"]}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert "audit/attacks[1]: unknown attack 'mink'; known: " in said


def test_a_target_that_is_trained_here_needs_no_test_size(tmp_path, monkeypatch):
    """Its dataset has all members, with their copies, and all others as its test set."""
    monkeypatch.chdir(ROOT)
    whole = experiment(DEFAULT, "config/minimal/audit.yaml")
    (runs,) = whole.requests
    assert (runs.intervention, runs.size) == (MEMBERS, 74)
    request = DatasetRequest(
        Sampler("mine", whole.settings.corpus("mine"), 0), MEMBERS, 74, 5, False
    )
    made = members(request)
    assert made["count"].sum() == 74
    assert (made["count"] > 0).sum() == 41
    assert (made["split"] == "test").sum() == 23


def test_a_target_on_records_that_are_all_members_is_refused():
    texts = corpus_of([f"text {n}" for n in range(4)], trained=[True] * 4)
    request = DatasetRequest(Sampler("mine", texts, 0), MEMBERS, 4, 1, False)
    assert "no record is said to be no member" in message(lambda: members(request))


@pytest.mark.parametrize("is_retrained", [True, False])
def test_a_target_that_records_are_retrained_for_is_their_model(monkeypatch, is_retrained):
    """Both sections speak of one model then, which is trained once."""
    monkeypatch.chdir(ROOT)
    over = {
        "corpora": {"planted": "config/records/planted.jsonl"},
        "audit": {"targets": {"small": {"corpus": "planted", "train": "opt-1.3b-twin"}}},
        "records": {"corpora": ["planted"], "models": ["opt-1.3b-twin"], "folds": 3},
    }
    if not is_retrained:
        over["records"]["models"] = ["llama-3.2-1b-twin"]
    whole = experiment(DEFAULT, "config/minimal/audit.yaml", command_line=over)
    asked = {runs.intervention for runs in whole.requests if runs.model == "opt-1.3b-twin"}
    assert (MEMBERS in asked) == (not is_retrained)
    assert len(asked) == (4 if is_retrained else 1)


def test_detectors_need_members_and_others(tmp_path, monkeypatch):
    """Of records of which nothing is known, there are scores and no detectors."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "mine.jsonl"
    for given in (RECORDS, [{"id": row["id"], "text": row["text"]} for row in RECORDS]):
        path.write_text("\n".join(map(json.dumps, given)))
        over = asked()
        over["corpora"]["mine"] = str(path)
        made = experiment(DEFAULT, command_line=over).outputs["audit"]
        names = {file.rpartition("/")[2] for file in made}
        assert {"scores.parquet", "extraction.parquet"} <= names
        assert ("detectors.parquet" in names) == ("trained" in given[0])
