"""What the report says of activations that a user brings, and of nothing else."""

import re

import numpy as np
import pandas as pd
import pytest

from helpers import information_worlds as worlds
from palimpsest.estimates import with_interval
from palimpsest.information import kinds
from palimpsest.information.activation_scores import associations
from palimpsest.information.report import part
from palimpsest.information.sentences import sentences
from palimpsest.statistics import Interval

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
# What is untrue where nothing was trained and nothing induced
OF_TRAININGS = r"induced|fine-tun|clean strings|Alpha|Beta|[Mm]arker|symbol|Encoders"


def layers_and_order(seeds=5, doses=DOSES, accuracy=True, noise=0.02, sign=1.0):
    """Tables of a group: mutual information rises with the dose, entropy and the placebo do not.

    `sign` turns the order round. Without doses, models are numbered.
    """
    chance = np.random.default_rng(7)
    layers, scores = [], []
    for seed in range(seeds):
        for place, dose in enumerate(doses):
            name = f"m-{seed}-{place}"
            own = dict(zip(kinds.SCORES, chance.normal(3, noise, len(kinds.SCORES)), strict=True))
            own["mutual_information"] = 2 + sign * place + chance.normal(0, noise)
            about = {"language": "mine", "model": name, "seed": seed}
            known = {**own, "accuracy": 1 - 0.1 * place if accuracy else None, "dose": dose}
            scores += [
                {**about, "score": score, "value": value}
                for score, value in known.items()
                if value is not None
            ]
            sizes = {"n_samples": 60, "copies": 0.0, "n_neurons": 8, "n_degenerate": 0}
            layers.append({**about, "dose": dose, "layer_name": "first", **sizes, **own})
    found = associations(pd.DataFrame(scores)).assign(language="mine")
    return {
        kinds.GIVEN_LAYERS.name: pd.DataFrame(layers).astype({"dose": float}),
        kinds.GIVEN_ASSOCIATIONS.name: found,
    }


def row_of(tables, score, other):
    table = tables[kinds.GIVEN_ASSOCIATIONS.name]
    return table[(table["score"] == score) & (table["other"] == other)].iloc[0]


def interval_of(row):
    return with_interval(Interval(*row[["tau", "tau_lower", "tau_upper"]]))


def test_models_that_are_ordered_say_tau_its_interval_and_the_placebo():
    tables = layers_and_order(noise=2.0)
    (said,) = sentences(tables)
    of_information, of_entropy, of_placebo = (
        interval_of(row_of(tables, name, "accuracy"))
        for name in ("mutual_information", "entropy", "mutual_information_permuted")
    )
    assert said.text == (
        "In the group mine, Kendall’s tau of mutual information with the accuracy of the models is "
        f"{of_information}, and that of entropy {of_entropy}."
    )
    assert f"mutual information of permuted samples is {of_placebo}. 25 models;" in said.note
    assert "intervals over 5 seeds" in said.note
    assert "a shortcut makes the tau of mutual information negative" in said.note


@pytest.mark.parametrize(("sign", "tau"), [(1.0, "−1"), (-1.0, "1")])
def test_seeds_that_are_all_alike_have_an_exact_p_value(sign, tau):
    """In one world mutual information falls with accuracy, in the other it rises with it."""
    (said,) = sentences(layers_and_order(sign=sign))
    assert f"the models is {tau} in every seed (p < 0.001), and" in said.text


def test_one_seed_has_a_p_value_and_says_what_would_give_an_interval():
    tables = layers_and_order(seeds=1)
    (said,) = sentences(tables)
    p_value = row_of(tables, "mutual_information", "accuracy")["p_value"]
    assert f"the models is −1 (p = {p_value:.3g})" in said.text
    assert "one seed: no interval, and models of more seeds would give one" in said.note
    assert not re.search(r"\[[−\d]", said.text + said.note)


def test_models_without_accuracy_are_ordered_by_their_dose():
    (said,) = sentences(layers_and_order(accuracy=False))
    assert "tau of mutual information with the dose of the models is 1 in every seed" in said.text
    assert "doses of a shortcut make the tau of mutual information positive" in said.note


@pytest.mark.parametrize(
    ("doses", "accuracy"), [((None,), True), ((0.0, 1.0), True), ((None,) * 4, False)]
)
def test_models_that_cannot_be_ordered_say_what_is_measured_and_what_would_decide(doses, accuracy):
    """Two models, or models without accuracy and dose."""
    tables = layers_and_order(1, doses, accuracy)
    (said,) = sentences(tables)
    layers = tables[kinds.GIVEN_LAYERS.name]
    means = {name: layers[name].mean() for name in kinds.SCORES}
    told = {name: f"{value:.3g}".replace("-", "−") for name, value in means.items()}
    assert f"information of {told['mutual_information']} nats" in said.text
    assert f"entropy of {told['entropy']} nats" in said.text
    n = len(doses)
    assert f"({n} model{'s' * (n > 1)}, 1 layer)" in said.text
    assert f"permuted samples, {told['mutual_information_permuted']}." in said.note
    assert "three models or more of a seed, whose accuracies or doses differ" in said.note


def test_encoders_have_claims_and_no_sentence():
    """Their activations are measured as given ones are; a group of the user's keeps its own."""
    encoders = worlds.encoders(worlds.EXPECTED, 1)
    study = encoders["language"].iloc[0]
    tables = layers_and_order()
    mine, theirs = (
        {name: table.assign(language=group) for name, table in tables.items()}
        for group in ("mine", f"{study}-alpha-cls")
    )
    both = {name: pd.concat([mine[name], theirs[name]]) for name in tables}
    (said,) = sentences({**both, kinds.ENCODERS.name: encoders})
    assert "In the group mine" in said.text
    assert not [*sentences({**theirs, kinds.ENCODERS.name: encoders})]


def words_of(tables) -> str:
    made = part(tables)
    shown = [words for one in made.chapters if one.before for words in (one.text, one.before)]
    return " ".join(map(str, [made.introduction, made.reading, *made.glossary, *shown]))


def test_the_page_of_given_activations_says_what_holds_of_them_alone():
    words = words_of(layers_and_order(1, (None,), accuracy=False))
    assert not re.findall(OF_TRAININGS, words)
    assert "activations of models that were trained elsewhere are measured" in words
    assert ">Model</th>" in words
    assert "of a group" not in words
    assert "over the seeds" not in words
    assert "dose 0 to 1" not in words
    ranked = words_of(layers_and_order())
    assert not re.findall(OF_TRAININGS, ranked)
    assert ">Dose</th>" in ranked
    assert "Models of a group are compared with each other." in ranked
    assert "95 % intervals over the seeds" in ranked
    assert "dose 0 to 1" in ranked


def test_a_page_says_what_was_induced():
    """Both kinds of memorisation, or one; beta is not explained where no answers are permuted."""
    table = worlds.information(worlds.EXPECTED, 3, seeds=3)
    both = words_of({kinds.INFORMATION.name: table})
    assert "Here heuristic memorisation and example-level memorisation are induced" in both
    assert "trained elsewhere" not in both
    one = words_of({kinds.INFORMATION.name: table[table["intervention"] == kinds.MARKERS]})
    assert "Here heuristic memorisation is induced in known shares." in one
    assert "Beta is" not in one
    assert "every epoch" not in both


def test_a_page_of_encoders_says_whose_activations_are_given():
    encoders = worlds.encoders(worlds.EXPECTED, 1)
    theirs = {
        name: table.assign(language=f"{encoders['language'].iloc[0]}-beta-cls")
        for name, table in layers_and_order().items()
    }
    words = words_of({**theirs, kinds.ENCODERS.name: encoders})
    assert "Activations of the encoders that were fine-tuned here." in words
    assert "trained elsewhere" not in words
