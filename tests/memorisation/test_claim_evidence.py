"""What a claim rests on: strings never trained on, stand-ins, models, and runs left out."""

import numpy as np
import pandas as pd
import pytest

from helpers.memorisation_verdicts import claims, found, planted, verdicts
from helpers.memorisation_worlds import (
    MODELS,
    SEEDS,
)
from palimpsest.memorisation.claims import CLAIMS
from palimpsest.memorisation.claims import claim_statistics as statistics
from palimpsest.memorisation.claims.rows import STRONGER
from palimpsest.statistics import student

IN_EXCESS = [
    claim
    for claim in CLAIMS
    if "beyond strings never trained on" in claim.statistic.words
    and claim.statistic.reads in ("tradeoff", "deduplication")
]


def without_excess(more):
    """The paper's world, but untrained strings are memorised as well, and `more` of them."""
    chance, studies = np.random.default_rng(0), planted("paper")[0]
    changed = {name: studies[name].copy() for name in ("tradeoff", "deduplication")}
    for frame in changed.values():
        noise = more + 0.01 * chance.standard_normal(len(frame))
        for trained, unseen in (
            ("below_distinct", "below_unseen"),
            ("margin_distinct", "margin_unseen"),
            ("below_covered", "below_unseen_covered"),
        ):
            if trained in frame:
                frame[unseen] = (frame[trained] + noise).clip(0, 1)
    return claims(changed)


def test_what_holds_of_strings_never_trained_on_is_no_memorisation():
    assert len(IN_EXCESS) == 6
    none, less = without_excess(0.0), without_excess(0.1)
    for claim in IN_EXCESS:
        assert "agrees" not in found(none, claim), claim.claim
        assert (none.loc[none["claim"] == claim.claim, "estimate"].abs() < 0.02).all()
        assert found(less, claim) == {"disagrees"}, claim.claim


def test_without_strings_never_trained_on_the_excess_is_open():
    studies = planted("paper")[0]
    unseen = ("below_unseen", "margin_unseen", "below_unseen_covered")
    none = {name: frame.assign(**dict.fromkeys(unseen, np.nan)) for name, frame in studies.items()}
    frame = claims(none)
    for claim in IN_EXCESS:
        assert found(frame, claim) == {"cannot tell"}, claim.claim


def test_models_in_which_a_claim_holds_are_counted():
    """In the torn world, some models are as in the paper, and the others as where it is wrong."""
    study = planted("paper")[0]["frequency"]
    other = planted("wrong")[0]["frequency"]
    mixed = [study[study["model"].isin(MODELS[:2])], other[other["model"].isin(MODELS[2:])]]
    rows = claims({"frequency": pd.concat(mixed)}).set_index("claim")
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert (rows.loc[name, "n_models_hold"], rows.loc[name, "n_models"]) == (2, len(MODELS))


def of_models(values):
    """A table with one number per model and seed, from float[models, seeds]."""
    n_models, n_seeds = np.shape(values)
    return pd.DataFrame(
        {
            "model": np.repeat([f"m{number}" for number in range(n_models)], n_seeds),
            "size": 64,
            "seed": np.tile(np.arange(n_seeds), n_models),
            "x": np.ravel(values),
        }
    )


def lowest(values):
    """The estimate for the lowest of the models."""
    return statistics.in_lowest_model(
        lambda table: table.set_index(statistics.UNIT)["x"], {}, of_models(values)
    )


def test_the_lowest_model_has_its_own_interval():
    """One model is below 0 although the mean over the models is far above."""
    values = [[0.5, 0.6, 0.7], [-0.1, -0.2, -0.3], [0.6, 0.6, 0.9]]
    found = lowest(values)
    assert found.values == pytest.approx((-0.1, -0.2, -0.3))
    assert found.mean == pytest.approx(-0.2)
    assert found.lower == pytest.approx(student(values[1]).lower)
    assert found.upper == pytest.approx(student(values[1], confidence=1 - 0.05 / 3).upper)
    # A model that varies much can reach lower than the model with the lowest mean.
    assert lowest([*values, [-0.9, 0.1, 1.0]]).lower == pytest.approx(
        student([-0.9, 0.1, 1.0]).lower
    )
    assert found.models == pytest.approx({"m0": 0.6, "m1": -0.2, "m2": 0.7})
    for no_interval in ([[0.1], [0.2]], [[0.1, 0.2], [0.3, 0.3]]):
        assert np.isnan([lowest(no_interval).lower, lowest(no_interval).upper]).all()


@pytest.mark.parametrize("others", [0.0, 3.0])
def test_the_interval_of_the_lowest_model_is_rarely_wrong(others):
    """The lowest mean is 0; the seeds share half of their variance over the models."""
    chance, n_studies = np.random.default_rng(0), 400
    wrong = {"above": 0, "below": 0}
    for _ in range(n_studies):
        noise = chance.standard_normal((4, 5)) + chance.standard_normal(5)
        found = lowest(noise + np.array([0.0, others, others, others])[:, None])
        wrong["above"] += found.lower > 0
        wrong["below"] += found.upper < 0
    # 2.5 % on each side, and three standard errors of the simulation.
    assert max(wrong.values()) <= 0.05 * n_studies, wrong


def test_claims_on_stand_ins_say_how_many_strings_have_them():
    """The lowest coverage of the measure and of the variants that the claim uses."""
    studies = planted("paper")[0]
    study = studies["deduplication"].assign(coverage=1.0)
    by_contextual = study["measure"] == "contextual"
    for variant, coverage in (("base", 0.7), ("dedup", 0.9), ("dedup-matched", 0.8)):
        study.loc[by_contextual & (study["variant"] == variant), "coverage"] = coverage
    study.loc[by_contextual & (study["seed"] == 1), "coverage"] -= 0.1
    rows = claims({**studies, "deduplication": study}).set_index("claim")["coverage"]
    assert rows[
        "Deduplication delays contextual memorisation, counted in epochs."
    ] == pytest.approx(0.6)
    name = "Under deduplication contextual memorisation starts before optimal learning."
    assert rows[name] == pytest.approx(0.8)
    assert np.isnan(rows["Deduplication delays memorisation by recollection, counted in epochs."])
    assert np.isnan(rows["Deduplication delays learning, counted in epochs."])
    # A claim on all measures rests on the measure that covers least.
    name = "Some strings are memorised before optimal learning whichever measure is applied."
    assert set(rows[name]) == {0.9}


def test_rows_with_runs_that_may_still_be_learning_are_marked():
    """Seed 2 of one of the six models; the study of deduplication has none."""
    rows = verdicts("paper").set_index("claim")
    name = "Memorisation is unavoidable when a language is learned optimally."
    assert set(rows.loc[name, "note"]) == {f"1 of 30 runs may still learn; {STRONGER}"}
    assert set(rows.loc[name, "verdict"]) == {"agrees"}
    # A pair of languages has the runs of both.
    name = (
        "The band of contextual starts is narrow for the high-entropy language and broad for the "
        "low-entropy one."
    )
    assert rows.loc[name, "note"] == "2 of 60 runs may still learn"
    study = planted("paper")[0]["deduplication"]
    marked = study.assign(still_learning=study["variant"].eq("base") & study["seed"].eq(0))
    rows = claims({"deduplication": marked}).set_index("claim")["note"]
    assert (
        rows["Deduplication delays learning, counted in epochs."] == "6 of 60 runs may still learn"
    )
    assert rows["Deduplication cannot avoid memorisation completely at optimal learning."] == ""


def test_the_other_number_is_in_the_note():
    """The paper's where false alarms are taken out, and that of unseen strings where not."""
    notes = verdicts("paper").set_index("claim")["note"]
    name = "A larger training set does not increase contextual memorisation of repeated strings."
    assert "as the paper's code counts, with false alarms: -0.0" in notes[name]
    name = "A larger training set increases recollection-based memorisation of repeated strings."
    assert notes[name] == "of strings never trained on: 0"
    name = "By recollection, frequent strings are memorised more than infrequent ones."
    assert notes[name] == "the same of unseen strings as probable: 0.35"
    name = (
        "By recollection no strings of the high-entropy language are memorised at optimal learning."
    )
    assert "of strings never trained on: 0.01" in notes[name]
    name = (
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning, corrected for false alarms."
    )
    assert "below the threshold: 0.95; of strings never trained on: 0.0091" in notes[name]


def test_what_unseen_strings_show_as_well_is_no_memorisation():
    """Frequency, training size and model size: the unseen strings change as the others do."""
    studies = planted("wrong")[0]
    frequency, sizes, models = (
        studies[name].copy() for name in ("frequency", "training_size", "model_size")
    )
    chance = np.random.default_rng(0)
    for frame in (frequency, sizes, models):
        for trained, unseen in (
            ("below_matched", "below_unseen_matched"),
            ("margin_matched", "margin_unseen_matched"),
            ("margin_distinct", "margin_unseen"),
            ("margin_repeated", "margin_repeated_unseen"),
        ):
            if trained in frame:
                frame[unseen] = frame[trained] + 0.01 * chance.standard_normal(len(frame))
    frame = claims({"frequency": frequency, "training_size": sizes, "model_size": models})
    before = verdicts("wrong")
    for name in (
        "Frequent and infrequent strings are almost equally susceptible to contextual "
        "memorisation.",
        "Frequent strings are, if anything, contextually memorised less.",
        "A larger training set does not increase contextual memorisation of repeated strings.",
        "A larger training set does not increase counterfactual memorisation of the training "
        "strings.",
        "Models of other sizes that learn better show less contextual memorisation.",
    ):
        (then,), (now,) = (
            before[before["claim"] == name].itertuples(),
            frame[frame["claim"] == name].itertuples(),
        )
        assert then.verdict == "disagrees", name
        assert abs(now.estimate) < abs(then.estimate) / 2, name
        assert now.verdict != "disagrees", name


def with_a_cut_band(language, variant):
    """The claims where the band of one run is cut, in one language and in one variant."""
    studies = planted("paper")[0]
    changed = {name: studies[name].copy() for name in ("tradeoff", "deduplication")}
    for frame, cut in (
        (changed["tradeoff"], changed["tradeoff"]["language"] == language),
        (changed["deduplication"], changed["deduplication"]["variant"] == variant),
    ):
        frame.loc[cut & (frame["model"] == "m2") & (frame["seed"] == 3), "start_p90"] = 11.0
    frame = claims(changed)
    return frame[frame["statistic"].str.contains("width of the|epochs in the|cuts a band")]


def test_a_band_that_the_end_of_training_cuts_is_a_lower_bound():
    """The bands of low entropy and of deduplicated data are claimed to be broad."""
    on_bands = with_a_cut_band("low", "dedup")
    assert len(on_bands) == 9
    delays = on_bands["claim"].str.contains("delays")
    assert set(on_bands.loc[delays, "verdict"]) == {"cannot tell"}
    bounded = on_bands[~delays]
    assert set(bounded["verdict"]) == {"agrees"}
    assert set(bounded["note"].str.split("; ").str[-1]) == {
        "1 of 30 values are lower bounds: the end of training cuts a band"
    }
    # There is no upper end but that of the statistic itself.
    assert set(bounded["upper"]) == {1.0, np.inf}


def test_a_lower_bound_never_disagrees():
    """Where the claims on bands are wrong, cut bands leave them open."""
    studies = planted("wrong")[0]
    changed = {name: studies[name].copy() for name in ("tradeoff", "deduplication")}
    for frame in changed.values():
        frame.loc[frame["seed"] == 3, "start_p90"] = 11.0
    frame = claims(changed)
    on_bands = frame[frame["statistic"].str.contains("width of the|epochs in the")]
    assert len(on_bands) == 7
    assert not on_bands["verdict"].eq("disagrees").any()


def test_a_cut_band_of_the_other_side_decides_nothing():
    """Of high entropy, of the base or of matched data: the difference could be anything."""
    on_bands = with_a_cut_band("high", "base")
    compared = on_bands[on_bands["claim"].str.contains("narrow")]
    assert len(compared) == 4
    assert set(compared["verdict"]) == {"cannot tell"}
    for note in compared["note"]:
        assert note.startswith("no interval: the statistic is undefined in some cases")
        assert "undefined in 1 of 30 cases" in note


def test_undefined_cases_are_counted_and_decide_nothing():
    studies = planted("paper")[0]["deduplication"].copy()
    studies.loc[(studies["model"] == "m0") & (studies["seed"] < 2), "test_spread"] = np.nan
    row = (
        claims({"deduplication": studies})
        .set_index("claim")
        .loc["Deduplication does not lead to an equal learning of test strings."]
    )
    assert (row["verdict"], row["n_seeds"]) == ("cannot tell", len(SEEDS))
    assert row["note"].endswith("undefined in 2 of 30 cases")
