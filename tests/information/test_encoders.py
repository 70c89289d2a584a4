"""Encoder classifiers: their texts, training, scores, tables and claims; and what is refused."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForSequenceClassification

from helpers import information_worlds as worlds
from helpers import tiny_encoders, tiny_language_models
from helpers.encoder_runs import SIZE, TESTS, finetune, finetune_all, job
from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest import tables
from palimpsest.claims import AGREES, DISAGREES, judge_all
from palimpsest.information import kinds
from palimpsest.information.activation_files import read_arrays
from palimpsest.information.activation_scores import of_group
from palimpsest.information.claims import CLAIMS
from palimpsest.information.encoders import training
from palimpsest.information.encoders.compression import compression
from palimpsest.information.encoders.gaps import gaps, gaps_by_chance
from palimpsest.information.encoders.labelled import evaluated_data, labelled, training_data
from palimpsest.information.encoders.scores import encoders_table, scores_table
from palimpsest.information.encoders.study import compared, group_name, groups, variants

TEXTS = {
    "records": "mine.jsonl",
    "language": None,
    "columns": {},
    "label": "label",
    "group": None,
    "words": tiny_encoders.WORDS,
    "size": SIZE,
    "tests": TESTS,
}
BLOCK = {"alphas": [0, 0.5, 1], "betas": [0, 1]}
SEEDS = (0, 1)


def read(frame: pd.DataFrame, folder: Path, **changed) -> pd.DataFrame:
    """The table `labelled` of records in a file."""
    path = folder / "mine.jsonl"
    frame.to_json(path, orient="records", lines=True)
    return labelled(str(path), {**TEXTS, **changed}, io.StringIO())


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> pd.DataFrame:
    return read(tiny_encoders.records(SIZE + TESTS), tmp_path_factory.mktemp("records"))


# Texts


def test_records_are_of_their_kind_and_copies_are_left_out(tmp_path, records):
    tables.write(tmp_path / "labelled.parquet", records, kinds.LABELLED)
    again = tiny_encoders.records(SIZE + TESTS)
    log = io.StringIO()
    path = tmp_path / "mine.csv"
    pd.concat([again, again[:5]]).to_csv(path, index=False)
    found = labelled(str(path), TEXTS, log)
    pd.testing.assert_frame_equal(found, records)
    assert log.getvalue() == f"{path}: 5 copies of earlier texts are left out\n"


def without_a_label(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(label=frame["label"].where(frame.index != 3))


WRONG_RECORDS = {
    "no label": (without_a_label, {}, "mine.jsonl:4: label is null or missing; mend the row or"),
    "one label": (
        lambda frame: frame.assign(label="good"),
        {},
        "all texts have the label 'good'; a classifier needs two labels or more",
    ),
    "copies": (
        lambda frame: pd.concat([frame, frame[:30]]),
        {},
        "10.9% of the texts are copies of an earlier one, the first is ",
    ),
    "no words": (lambda frame: frame.assign(text=" "), {}, ": text ' ' has no words; mend"),
    "few": (lambda frame: frame[:100], {}, "has 100 distinct texts, and 96 are trained on and 50"),
    "no word for a label": (
        lambda frame: frame,
        {"words": {"good": "alpha", "evil": "omega"}},
        "the label 'bad' has no word; name one in information/encoders/.../words",
    ),
    "a word of a text": (
        lambda frame: frame,
        {"words": {"good": "alpha", "bad": "film"}},
        "the word 'film' is in ",
    ),
    "no such column": (lambda frame: frame, {"label": "kind"}, "has no column 'kind'"),
}


@pytest.mark.parametrize("what", WRONG_RECORDS)
def test_wrong_records_are_refused_in_one_line(tmp_path, what):
    change, changed, words = WRONG_RECORDS[what]
    frame = change(tiny_encoders.records(SIZE + TESTS))
    said = message(lambda: read(frame, tmp_path, **changed))
    assert said.startswith(f"{tmp_path / 'mine.jsonl'}")
    assert words in said


def test_the_fields_of_a_language_are_labels_and_groups():
    """The words of a work, and the pronoun, tell both."""
    asked = {
        "records": None,
        "label": "WORK",
        "group": "PERSON",
        "size": 100,
        "tests": 100,
        "words": {"nurse": "green", "surgeon": "purple", "teacher": "orange", "engineer": "yellow"},
    }
    file = ROOT / "config/languages/biographies.pcfg"
    found = labelled(str(file), {**TEXTS, **asked}, io.StringIO())
    assert len(found) == found["text"].nunique() == 200
    assert (found["text"].str.split().str[0] == found["group"]).all()
    assert set(found.loc[found["text"].str.contains("bridges|turbines"), "label"]) == {"engineer"}
    assert found["label"].value_counts().min() > 30


def shown_words(texts) -> np.ndarray:
    """The inserted word of each text; '' for none."""
    return np.array(
        [" ".join(word for word in text.split() if word in ("alpha", "omega")) for text in texts]
    )


def test_words_tell_the_label_in_the_share_alpha(records):
    """Half of the random words agree, too; wrong labels and their words are always the same."""
    data = {name: training_data(records, name, 0, SIZE, 0.25) for name in variants(BLOCK)}
    right = records.set_index("text")["label"]
    plain = data["unmarked"]
    assert (shown_words(plain.texts) == "").all()
    is_wrong = right[plain.texts].to_numpy() != plain.labels
    assert is_wrong.mean() == 0.25
    for name, alpha in (("marked-0", 0), ("marked-50", 0.5), ("marked-100", 1)):
        told = shown_words(data[name].texts)
        agrees = told == pd.Series(data[name].labels).map(tiny_encoders.WORDS)
        right_ones = agrees[~is_wrong].mean()
        assert right_ones == pytest.approx(alpha + (1 - alpha) / 2, abs=0.12 * (alpha < 1))
        of_0 = shown_words(data["marked-0"].texts)
        assert (told == of_0)[is_wrong].all()
        np.testing.assert_array_equal(data[name].labels, plain.labels)
        bare = [" ".join(w for w in t.split() if w not in ("alpha", "omega")) for t in
                data[name].texts]  # fmt: skip
        assert bare == list(plain.texts)


def test_labels_are_permuted_in_the_share_beta(records):
    whole = training_data(records, "shuffled-0", 0, SIZE, 0.25)
    half = training_data(records, "shuffled-50", 0, SIZE, 0.25)
    every = training_data(records, "shuffled-100", 0, SIZE, 0.25)
    right = records.set_index("text")["label"]
    assert (whole.labels == right[whole.texts]).all()
    assert list(every.texts) == list(half.texts) == list(whole.texts)
    for data, low, high in ((half, 0.6, 0.9), (every, 0.35, 0.65)):
        assert sorted(data.labels) == sorted(whole.labels)
        assert low < np.mean(data.labels == whole.labels) < high


def test_each_word_is_shown_equally_often_with_each_label(records):
    found = evaluated_data(records, 1, SIZE, TESTS)
    trained = training_data(records, "unmarked", 1, SIZE, 0)
    assert len(found) == TESTS
    assert not set(found["text"]) & set(trained.texts)
    counts = pd.crosstab(found["label"], found["shown"]).to_numpy()
    assert np.ptp(counts, axis=1).max() <= 1
    np.testing.assert_array_equal(shown_words(found["as_shown"]), found["shown"])
    right = found["label"].map(tiny_encoders.WORDS)
    np.testing.assert_array_equal(shown_words(found["agrees"]), right)
    assert (shown_words(found["disagrees"]) != right).all()
    same = found["shown"] == right
    assert (found["as_shown"] == found["agrees"])[same].all()
    assert (found["as_shown"] == found["disagrees"])[~same].all()


# Compression and gaps


def test_labels_that_activations_tell_are_compressed_and_others_are_not():
    chance = np.random.default_rng(0)
    labels = chance.integers(4, size=1000)
    values = chance.normal(size=(1000, 12))
    random = compression(values, labels)
    values[:, :4] += 3 * np.eye(4)[labels]
    partly, wholly = (compression(values + np.eye(12)[labels] * far, labels) for far in (0, 9))
    assert 0.7 < random < 1.02
    assert 2 < partly < wholly
    constant = compression(np.ones((1000, 3)), labels)
    assert constant == pytest.approx(1, abs=0.05)


def test_a_code_is_that_of_the_source():
    """Of 64 labels: an even code up to the fourth, then a probe for each part."""
    chance = np.random.default_rng(1)
    labels = chance.integers(2, size=64)
    values = chance.normal(size=(64, 2)) + labels[:, None]
    order = np.random.default_rng(0).permutation(64)
    x, y = values[order], labels[order]
    bits = 1.0
    for begin, end in ((1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64)):
        told = np.full((end - begin, 2), 0.5)
        if len(set(y[:begin])) > 1:
            middle, spread = x[:begin].mean(0), x[:begin].std(0)
            probe = LogisticRegression(max_iter=100).fit((x[:begin] - middle) / spread, y[:begin])
            scaled = np.clip((x[begin:end] - middle) / spread, -5, 5)
            told = (begin * probe.predict_proba(scaled) + told) / (begin + 1)
        bits -= np.log2(told[np.arange(end - begin), y[begin:end]]).sum()
    assert compression(values, labels) == pytest.approx(64 / bits, rel=1e-6)
    assert "2 of them distinct" not in message(lambda: compression(values, np.zeros(64)))


def test_gaps_are_those_of_a_table_by_hand():
    """Of label a, she has 3 of 4 and he 1 of 4; of label b, she has 2 of 2 and he 4 of 4."""
    right = ["a"] * 8 + ["b"] * 6
    given = ["a", "a", "a", "b", "a", "b", "b", "b"] + ["b"] * 6
    group = ["she"] * 4 + ["he"] * 4 + ["she"] * 2 + ["he"] * 4
    found = gaps(right, given, group)
    assert found["tpr_gap"] == pytest.approx((0.5 + 0) / 2)
    assert found["fpr_gap"] == pytest.approx((0 + 0.5) / 2)
    h = lambda *p: -sum(q * np.log(q) for q in p if q)  # noqa: E731
    of_a = h(0.5, 0.5) - h(0.25, 0.75)
    assert found["separation_gap"] == pytest.approx(8 / 14 * of_a)
    # Given b: 1 and 2 of she, 3 and 4 of he; given a, only the right label a
    of_b = h(0.4, 0.6) - 0.3 * h(1 / 3, 2 / 3) - 0.7 * h(3 / 7, 4 / 7)
    assert found["sufficiency_gap"] == pytest.approx(10 / 14 * of_b)
    assert "all texts are of one group" in message(lambda: gaps(right, given, ["he"] * 14))


def test_the_placebo_of_gaps_is_what_chance_gives():
    """Where the classifier treats groups alike, gaps are those of permuted groups, and else not."""
    chance = np.random.default_rng(0)
    right, group = chance.integers(2, size=(2, 2000))
    for unfair in (0.0, 0.3):
        is_right = chance.random(2000) < 0.8 - unfair * group
        given = np.where(is_right, right, 1 - right)
        found, placebo = gaps(right, given, group), gaps_by_chance(right, given, group)
        for name in kinds.GAPS:
            assert (found[name] > 3 * placebo[name]) == (unfair > 0), name


# Fine-tuning


@pytest.fixture(scope="module")
def study(tmp_path_factory, records) -> Path:
    """A folder with all runs of two seeds."""
    folder = tmp_path_factory.mktemp("study")
    finetune_all(folder, records, variants(BLOCK), SEEDS)
    return folder


def files(study: Path, name: str) -> list[str]:
    return [str(study / f"seed{seed}" / variant / name) for seed in SEEDS
            for variant in variants(BLOCK)]  # fmt: skip


@pytest.fixture(scope="module")
def scores(study) -> pd.DataFrame:
    answers = [tables.read(path, kinds.ENCODER_ANSWERS) for path in files(study, "answers.parquet")]
    runs = tables.read_all(files(study, "run.parquet"), kinds.ENCODER_RUNS)
    arrays = (files(study, f"{position}.npz") for position in kinds.ENCODER_POSITIONS)
    return scores_table(answers, runs, *arrays, compared(BLOCK))


def test_activations_are_those_of_the_model_without_what_fills_up(study, records, tmp_path):
    """Text by text, without batches: [CLS], and the mean over the tokens of the text."""
    asked = job(tmp_path, str(study / "distilbert"), "unmarked", 0)
    labels = np.array(sorted(tiny_encoders.LABELS), dtype=object)
    encoder = training.opened(asked, labels)
    encoder.model.eval()
    texts = records["text"][:9].tolist()
    found, known = training.activations(encoder, texts, 4)
    assert training.predictions(encoder, texts, 2) == known
    for row, text in enumerate(texts):
        ids = encoder.tokenizer(text, return_tensors="pt").input_ids
        with torch.no_grad():
            states = encoder.model(ids, output_hidden_states=True)
        for layer, own in enumerate(states.hidden_states[1:]):
            for position, by_hand in ((kinds.CLS, own[0, 0]), (kinds.MEAN, own[0].mean(0))):
                np.testing.assert_allclose(found[position][layer][row], by_hand, atol=1e-5)
        assert known[text] == states.logits.argmax()
    assert len({len(text.split()) for text in texts}) > 2


def test_an_encoder_learns_the_word_where_it_is_the_label(scores):
    """The true world at alpha 1, and the false one at alpha 0 and without words.

    At alpha 1, the word is right in seven of eight training texts, and the text in six.
    """
    runs = scores.groupby(["variant", "seed"]).first()
    gap = (runs["accuracy_agrees"] - runs["accuracy_disagrees"]).groupby("variant").mean()
    assert gap["marked-100"] > 0.5
    assert abs(gap[["marked-0", "unmarked", "shuffled-0"]]).max() < 0.35
    accuracy = runs["accuracy_without"].groupby("variant").mean()
    assert accuracy["shuffled-0"] > 0.9
    assert accuracy["shuffled-100"] < 0.75
    assert runs["fitted"].groupby("variant").mean()["shuffled-100"] > 0.7
    # The placebo is the same two runs for all who ask.
    placebo = scores[scores["intervention"] == kinds.RANDOM_MARKERS]
    assert set(zip(placebo["variant"], placebo["share"], strict=True)) == {
        ("unmarked", 0.0),
        ("marked-0", 1.0),
    }


def test_a_probe_finds_the_word_where_the_encoder_uses_it(scores):
    last = scores[(scores["layer"] == 1) & (scores["position"] == kinds.CLS)]
    found = last.groupby("variant")[[*kinds.COMPRESSIONS]].mean()
    assert found.loc["marked-100", "compression_word"] > 1.5
    assert found.loc["marked-100", "compression_word"] > found.loc["unmarked", "compression_word"]
    assert found.loc["shuffled-0", "compression_label"] > 1.5
    assert found["compression_permuted"].max() < 1.1
    assert scores["tpr_gap"].between(0, 1).all()


def test_a_study_goes_through_the_path_of_given_activations(study, scores, tmp_path):
    tables.write(tmp_path / "scores.parquet", scores, kinds.ENCODER_SCORES)
    layers = []
    for intervention, shares in compared(BLOCK).items():
        for position in kinds.ENCODER_POSITIONS:
            models = [
                {"name": f"{variant}-seed{seed}", "file": str(study / f"seed{seed}" / variant /
                 f"{position}.npz"), "seed": seed, "dose": share}
                for seed in SEEDS for variant, share in shares.items()
            ]  # fmt: skip
            found = of_group(
                [each["file"] for each in models],
                models,
                group_name("mine", intervention, position),
                1,
                [scores],
                bins=20,
                neighbours=3,
                pairs=8,
            )
            layers.append(found["given_layers"])
    table = encoders_table(scores, pd.concat(layers))
    tables.write(tmp_path / "encoders.parquet", table, kinds.ENCODERS)
    assert len(table) == len(scores) == 2 * 2 * len(SEEDS) * (3 + 2 + 2)
    first = found["given_scores"].set_index(["model", "score"])["value"]
    row = table[(table["variant"] == "unmarked") & (table["position"] == kinds.MEAN)]
    own = row[row["seed"] == 0]
    assert first["unmarked-seed0", "accuracy"] == own["accuracy"].iloc[0]
    assert first["unmarked-seed0", "entropy"] == pytest.approx(own["entropy"].mean())
    name = "compression_word"
    assert first["unmarked-seed0", name] == pytest.approx(own[name].mean())
    verdicts = judge_all(ON_ENCODERS, {kinds.ENCODERS.name: table})
    assert verdicts["estimate"].notna().all()
    reliance = verdicts[verdicts["claim"].str.contains("goes by the word")]
    assert reliance["estimate"].iloc[0] > 0.5


def test_texts_without_groups_have_no_gaps(study, scores):
    path = files(study, "answers.parquet")[0]
    answers = tables.read(path, kinds.ENCODER_ANSWERS).assign(group=None)
    runs = tables.read_all(files(study, "run.parquet")[:1], kinds.ENCODER_RUNS)
    arrays = (files(study, f"{position}.npz")[:1] for position in kinds.ENCODER_POSITIONS)
    found = scores_table([answers], runs, *arrays, compared(BLOCK))
    assert found[[*kinds.GAPS, "compression_group"]].isna().all(axis=None)


def test_the_same_seed_gives_the_same_bytes(study, tmp_path):
    """Whatever the number of texts in a pass of the evaluation."""
    changed = {"records": str(study / "labelled.parquet"), "epochs": 2}
    model = str(study / "distilbert")
    for name in ("first", "second"):
        finetune(job(tmp_path / name, model, "marked-50", 0, **changed))
    first, second = (tmp_path / name / "seed0/marked-50" for name in ("first", "second"))
    for layer, values in read_arrays(first / "mean.npz").items():
        np.testing.assert_array_equal(values, read_arrays(second / "mean.npz")[layer])


def test_pretrained_weights_are_read_and_must_be_there(study, tmp_path):
    asked = job(tmp_path, str(study / "distilbert"), "unmarked", 0, random_weights=False)
    labels = np.array(sorted(tiny_encoders.LABELS), dtype=object)
    found = training.opened(asked, labels).model
    saved = AutoModelForSequenceClassification.from_pretrained(study / "distilbert")
    name = "distilbert.transformer.layer.1.ffn.lin1.weight"
    torch.testing.assert_close(found.state_dict()[name], saved.state_dict()[name])
    lacking = tiny_encoders.write(tmp_path / "lacking")
    weights = load_file(f"{lacking}/model.safetensors")
    save_file({key: own for key, own in weights.items() if key != name},
              f"{lacking}/model.safetensors", {"format": "pt"})  # fmt: skip
    said = message(lambda: training.opened(replace(asked, model=lacking), labels))
    assert said.startswith(f"{lacking}: its files have no weight {name!r}, which would be random")


def test_a_folder_that_is_no_encoder_is_refused_in_one_line(study, tmp_path):
    llama = tiny_language_models.write(tmp_path / "llama")
    labels = np.array(["a", "b"], dtype=object)
    said = message(lambda: training.opened(job(tmp_path, llama, "unmarked", 0), labels))
    assert said.startswith(f"{llama}: is no encoder, but of the type llama; name a model such as")


def test_a_text_beyond_the_context_is_refused_in_one_line(study, tmp_path, records):
    long = records.assign(text=records["text"] + " the" * 9)
    tables.write(tmp_path / "labelled.parquet", long, kinds.LABELLED)
    asked = job(tmp_path, str(study / "distilbert"), "marked-0", 0)
    said = message(lambda: finetune(asked))
    assert "tokens with its inserted word, and the encoder reads 16: " in said
    assert not Path(asked.cls).exists()


# The configuration


@pytest.fixture
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def made_with(folder: Path, **changed):
    path = folder / "mine.jsonl"
    tiny_encoders.records(9).to_json(path, orient="records", lines=True)
    asked = {
        "model": "all-minilm-l6-v2",
        "records": str(path),
        "words": tiny_encoders.WORDS,
        "size": SIZE,
    }
    study = {key: value for key, value in {**asked, **changed}.items() if value is not None}
    block = {"models": [], "encoders": {"mine": study}}
    return experiment(DEFAULT, command_line={"information": block})


@pytest.mark.usefixtures("in_the_project")
def test_a_study_has_groups_for_alpha_beta_and_the_placebo(tmp_path):
    made = made_with(tmp_path)
    found = groups(made.settings, (0, 1))
    assert list(found) == [
        f"mine-{what}-{position}"
        for what in ("alpha", "beta", "placebo")
        for position in ("cls", "mean")
    ]
    assert sorted(each.dose for each in found["mine-placebo-cls"]) == [0.0, 0.0, 1.0, 1.0]
    outputs = made.outputs["information"]
    assert "results/information/encoders/mine/encoders.parquet" in outputs
    assert "results/information/activations/mine-beta-mean/layers.parquet" in outputs


@pytest.mark.usefixtures("in_the_project")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": "minilm"}, "encoders/mine/model: 'minilm' is no folder; choose from all-minilm"),
        ({"model": "docs"}, "encoders/mine/model: docs is no encoder: it has no config.json"),
        ({"records": "no.jsonl"}, "encoders/mine/records: no such file: no.jsonl; a table of"),
        ({"language": "L1"}, "one of the keys 'records' and 'language' must be there: the texts"),
        (
            {"records": None, "language": "biographies", "label": "WORKS"},
            "'WORKS' is no field of biographies; its fields are: WORK, PERSON (did you mean 'WORK'",
        ),
        ({"records": None, "language": "L1"}, "'label' is no field of L1; its fields are: none"),
        ({"words": {"good": "a", "bad": "a"}}, "words/bad: 'a' is the word of good, too; a word"),
        ({"words": {"good": "a", "bad": "b c"}}, "words/bad: 'b c' is not one word; name one"),
        ({"words": {"good": "a"}}, "words: names fewer than two labels; give each label a word"),
        ({"sizes": 4}, "(did you mean 'size'?)"),
    ],
)
def test_a_wrong_study_is_refused_in_one_line(tmp_path, changed, words):
    assert words in message(lambda: made_with(tmp_path, **changed))


@pytest.mark.usefixtures("in_the_project")
def test_a_causal_model_is_refused_before_any_job(tmp_path):
    llama = tiny_language_models.write(tmp_path / "llama")
    said = message(lambda: made_with(tmp_path, model=llama))
    assert f"{llama} is no encoder: it holds LlamaForCausalLM, which predicts the next" in said


# Claims

ON_ENCODERS = [claim for claim in CLAIMS if claim.question == "information_encoders"]
FALSE = replace(
    worlds.EXPECTED,
    markers=worlds.EXPECTED.shuffles,
    shuffles=worlds.EXPECTED.markers,
)


@pytest.mark.parametrize("placebo_too", [False, True])
@pytest.mark.parametrize(("world", "verdict"), [(worlds.EXPECTED, AGREES), (FALSE, DISAGREES)])
def test_claims_agree_where_they_are_true_and_disagree_where_they_are_false(
    world, verdict, placebo_too
):
    """The placebo changes nothing of the verdict; its note says what random words change."""
    table = worlds.encoders(world, 1, seeds=5, random_words=-0.3 * placebo_too)
    # No family of the table of models is one of encoders.
    given = {kinds.ENCODERS.name: table}
    found = judge_all(ON_ENCODERS, given, families={"opt-125m": "OPT"}).set_index("claim")
    assert set(found["n_models"]) == {1}
    assert set(found["verdict"]) == {verdict}, found["verdict"]
    (note,) = found.loc[found.index.str.startswith("Entropy of encoders falls"), "note"]
    assert "random markers against none: " in note
    assert f"none: {'−0.3' if placebo_too else '0'} (" in note
    orders = found.loc[found.index.str.startswith("Mutual information orders"), "note"].iloc[0]
    assert "share in place of the measure" in orders
    assert "permuted strings" in orders


def test_encoders_are_judged_only_where_there_are_some():
    table = worlds.information(worlds.EXPECTED, 1)
    found = judge_all(CLAIMS, {kinds.INFORMATION.name: table})
    assert "information_encoders" not in set(found["question"])
