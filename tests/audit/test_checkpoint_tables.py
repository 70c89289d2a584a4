"""The tables, results and sentences of a set of checkpoints, from planted scores of records."""

import json
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hmean, ks_2samp
from sklearn.metrics import roc_auc_score

from helpers.experiments import message
from palimpsest import tables
from palimpsest.audit.checkpoints import report_rows
from palimpsest.audit.checkpoints.comparing import compare
from palimpsest.audit.checkpoints.kinds import OF_SETS, OPEN_UNLEARNING, ROLES
from palimpsest.audit.report import part
from palimpsest.audit.section import SECTION
from palimpsest.audit.sentences import sentences
from palimpsest.errors import Notice
from palimpsest.number_format import number
from palimpsest.report.part import part_of

N = 12  # records of each split
SPLITS = np.repeat(["forget", "retain", "holdout"], N)
KNOWN, UNKNOWN = 0.1, 2.0  # losses of answers that a model learned, or did not
# Losses of forget, retain and holdout records
LOSSES = {
    "original": (KNOWN, KNOWN, UNKNOWN),
    "retrained": (UNKNOWN, KNOWN, UNKNOWN),
    "half": (1.05, KNOWN, UNKNOWN),
    "ascent": (4.0, 3.0, 4.0),
}


def scored(name, kind, seed, false=True, holdout=True):
    """The table `checkpoint_scores` of a model, in which each record has a loss of its own."""
    chance = np.random.default_rng(seed)
    loss = np.repeat(LOSSES[kind], N) * chance.uniform(0.9, 1.1, 3 * N)
    ratio = np.exp(loss - UNKNOWN) if false else np.full(3 * N, np.nan)
    frame = pd.DataFrame(
        {
            "language": "mine",
            "model": name,
            "id": [f"{place}" for place in range(3 * N)],
            "group": [f"{place // 2}" for place in range(3 * N)],
            "split": SPLITS,
            "n_tokens": 5,
            "loss": loss,
            "probability": np.exp(-loss),
            "rouge_l_recall": 1 / (1 + loss),
            "exact_match": (loss < 1).astype(float),
            "exact_memorisation": (loss < 1) * 0.75,
            "extraction_strength": (loss < 1) * 0.5,
            "truth_ratio": ratio,
            "zlib": -loss / 20,
            "min_k": -loss,
            "min_k_plus": -loss,
        }
    )
    return frame if holdout else frame[frame["split"] != "holdout"].reset_index(drop=True)


def compared(original=1, retrained=2, unlearned=("half", "ascent"), **how):
    """The tables of a set, written and read."""
    kinds = {
        "original": ["original"] * original,
        "retrained": ["retrained"] * retrained,
        "unlearned": unlearned,
    }
    roles, scores = {}, []
    for role in ROLES:
        roles[role] = [f"{kind}-{place}" for place, kind in enumerate(kinds[role])]
        for name, kind in zip(roles[role], kinds[role], strict=True):
            scores.append(scored(name, kind, len(scores), **how))
    return compare(scores, model="npo", language="mine", roles=roles, false_positive_rates=[0.1]), {
        frame["model"].iloc[0]: frame for frame in scores
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    found, scores = compared()
    for kind in OF_SETS:
        tables.write(folder / kind.name, found[kind.name], kind)
    read = {kind.name: tables.read(folder / kind.name, kind) for kind in OF_SETS}
    return {**found, **read}, scores


def shares_of(found):
    return found["checkpoint_gaps"].set_index(["checkpoint", "split"])


def test_shares_and_their_controls(made):
    found, _ = made
    shares = shares_of(found)
    assert shares.loc["original-0", ["share", "lower", "upper"]].isna().all(axis=None)
    for name, share in {
        "half-0": 0.5,
        "ascent-1": 2.05,
        "retrained-0": 1,
        "retrained-1": 1,
    }.items():
        row = shares.loc[(name, "forget")]
        assert row["share"] == pytest.approx(share, abs=0.1), name
        assert row["lower"] < share < row["upper"]
    assert shares.loc[("half-0", "holdout"), "share"] == pytest.approx(0, abs=0.1)
    assert shares.loc[("ascent-1", "holdout"), "share"] == pytest.approx(1.05, abs=0.15)
    assert shares.loc[("ascent-1", "retain"), "share"] == pytest.approx(1.53, abs=0.15)
    assert shares["n_retrained"].loc["retrained-0"].eq(1).all()


def test_a_set_of_one_model_of_each_kind_has_shares():
    found, _ = compared(1, 1, ("half",))
    shares = shares_of(found)
    assert shares.loc[("half-0", "forget"), "share"] == pytest.approx(0.5, abs=0.1)
    assert found["checkpoint_tests"].empty
    assert "all" not in shares.index.get_level_values(0)


def test_a_model_is_not_compared_with_itself(made):
    """0 and 1 by construction would look like placebos of no width."""
    alone = shares_of(compared(1, 1, ("half",))[0])
    ends = ["share", "lower", "upper"]
    assert alone.loc["original-0", ends].isna().all(axis=None)
    assert alone.loc[("retrained-0", "forget"), ends].isna().all()
    assert alone.loc[("retrained-0", "forget"), "n_retrained"] == 0
    # Its other records are compared with the original's: what retraining does to them.
    assert alone.loc[("retrained-0", "holdout"), "share"] == pytest.approx(0, abs=0.15)
    several = shares_of(compared(2, 2)[0])
    for name, share in {"original-0": 0, "original-1": 0, "retrained-0": 1}.items():
        row = several.loc[(name, "forget")]
        assert row["share"] == pytest.approx(share, abs=0.1), name
        assert row["lower"] < row["share"] < row["upper"], name
    opening = part(compared(1, 1, ("half",))[0]).opening
    assert re.search(
        r"of this gap; under retrained models, it (rose|fell|changed) by −?0[.0-9]*\.", opening
    )


def test_means_are_put_so_that_the_truth_is_better(made):
    found, scores = made
    values = found["checkpoint_metrics"].set_index(["checkpoint", "split", "metric"])["value"]
    for name, frame in scores.items():
        by_split = dict(list(frame.groupby("split")))
        for metric in ("loss", "exact_match", "extraction_strength"):
            assert values[name, "holdout", metric] == pytest.approx(
                by_split["holdout"][metric].mean()
            )
        ratio = by_split["forget"]["truth_ratio"]
        expected = np.where(ratio < 1, ratio, 1 / (ratio + 1e-10)).mean()
        assert values[name, "forget", "truth_ratio"] == pytest.approx(expected)
        retain = by_split["retain"]
        truth = retain["truth_ratio"].map(lambda value: max(0, 1 - value)).mean()
        assert values[name, "retain", "truth_ratio"] == pytest.approx(truth)
        means = [retain["probability"].mean(), retain["rouge_l_recall"].mean(), truth]
        assert values[name, "retain", "retain_utility"] == pytest.approx(hmean(means))


def test_results_have_the_names_of_open_unlearning(made):
    """Each worked out here from the scores, by scikit-learn and scipy."""
    found, scores = made
    results = json.loads(json.dumps(found[OPEN_UNLEARNING.name]))
    assert list(results) == list(scores)
    frame, retrained = scores["half-0"], scores["retrained-0"]
    forget, retain = (frame[frame["split"] == split] for split in ("forget", "retain"))
    either = frame[frame["split"] != "retain"]
    holdout = (either["split"] == "holdout").to_numpy()
    own, other = (
        roc_auc_score(holdout, -one.loc[either.index, "min_k"]) for one in (frame, retrained)
    )
    ratios = [one.loc[one["split"] == "forget", "truth_ratio"] for one in (frame, retrained)]
    expected = {
        "exact_memorization": forget["exact_memorisation"].mean(),
        "extraction_strength": np.maximum(forget["extraction_strength"], 1 / 4).mean(),
        "forget_Q_A_Prob": forget["probability"].mean(),
        "forget_Q_A_ROUGE": forget["rouge_l_recall"].mean(),
        "forget_quality": ks_2samp(*ratios).pvalue,
        "forget_truth_ratio": np.minimum(ratios[0], 1 / (ratios[0] + 1e-10)).mean(),
        "mia_loss": roc_auc_score(holdout, either["loss"]),
        "mia_min_k": own,
        "mia_min_k_plus_plus": roc_auc_score(holdout, -either["min_k_plus"]),
        "mia_zlib": roc_auc_score(holdout, -either["zlib"]),
        "privleak": 100 * ((1 - own) - (1 - other)) / (1 - other),
        "retain_Q_A_Prob": retain["probability"].mean(),
        "retain_Q_A_ROUGE": retain["rouge_l_recall"].mean(),
        "retain_Truth_Ratio": np.maximum(0, 1 - retain["truth_ratio"]).mean(),
    }
    assert results["half-0"] == pytest.approx(expected)
    placebo = found["checkpoint_forget_quality"].set_index(["checkpoint", "against"])["p_value"]
    assert results["retrained-0"]["forget_quality"] == placebo["retrained-0", "retrained-1"]


def test_attacks_find_what_the_original_learned_and_retraining_did_not(made):
    found, _ = made
    rows = found["checkpoint_membership"]
    auc = rows[rows["statistic"] == "auc"].set_index(["checkpoint", "attack"])
    assert auc.loc[("original-0", "loss"), "value"] == 1
    assert (
        auc.loc[("retrained-0", "loss"), "lower"] < 0.5 < auc.loc[("retrained-0", "loss"), "upper"]
    )
    assert auc.loc[("half-0", "loss"), "value"] == 1
    assert set(rows["statistic"]) == {"auc", "tpr@0.1"}


def test_the_report_says_a_sentence_of_each_unlearned_model(made):
    found, _ = made
    (chapter,) = [one for one in part(found).chapters if one.id == "checkpoints"]
    opening = part(found).opening
    assert "half-0 closed <b>0.49" in opening
    assert "more than retraining" in opening or "general damage" in opening  # ascent
    assert "under retrained models, the placebo, of 0." in opening
    assert "there are 2 and 2" in chapter.after
    assert "only 20 labellings" in chapter.after
    assert "split holdout" not in chapter.after
    assert "no intervals" not in chapter.after


def test_the_first_page_says_the_same_sentences(made):
    """The share with its interval; controls and placebos are the note."""
    found, _ = made
    opening = part(found).opening
    said = [*sentences(found)]
    assert len(said) == opening.count("<p>") > 1
    for one in said:
        assert f"<p>{one.text} {one.note}" in opening
    assert not re.search("(rose|fell) by −", opening)
    (half,) = [one for one in said if "half-0" in one.text]
    assert re.search(r"closed <b>0\.49\d* \[", half.text)
    assert "under retrained models, the placebo, of 0." in half.note
    assert not [*sentences({})]


def test_a_loss_rises_or_falls():
    row = {"share": -0.00265, "lower": -0.00527, "upper": -2.97e-05}
    fell = "fell by 0.00265 [0.00003, 0.00527]"
    assert report_rows._moved(pd.Series(row)) == fell
    rose = report_rows._moved(pd.Series({"share": 0.2, "lower": -0.1, "upper": 0.5}))
    assert rose == "rose by 0.2 [−0.1, 0.5]"
    assert report_rows._all_moved([-0.07, -0.1]) == "fell by 0.07, 0.1"
    assert report_rows._all_moved([0.07]) == "rose by 0.07"
    assert report_rows._all_moved([0.07, -0.1]) == "changed by 0.07, −0.1"
    assert report_rows._all_moved([-1.73e-05, 0.00132]) == "changed by −0.00002, 0.00132"
    assert report_rows._all_moved([np.nan]) == "rose by –"


def test_the_page_speaks_of_what_was_asked_for(made):
    """Unlearned checkpoints alone, attacks alone, or both."""
    found, _ = made
    roc = pd.DataFrame(
        [
            {"language": "mine", "model": "tuned", "attack": "loss", "n_members": 7, "n_unseen": 2,
             "n_duplicates": 0, "statistic": "auc", "value": 0.5, "lower": 0.4, "upper": 0.6}
        ]
    )  # fmt: skip
    alone = part_of(SECTION, found)
    assert alone.title == "Did unlearning work?"
    assert "Unlearned models answer the same questions" in alone.introduction
    assert "recites" not in alone.introduction
    assert alone.title not in [one.title for one in alone.chapters]
    both = part_of(SECTION, {**found, "attack_roc": roc})
    assert both.title == part_of(SECTION, {"attack_roc": roc}).title == SECTION.title
    assert "recites" in both.introduction
    assert "Unlearned models" in both.introduction
    assert "Unlearned models" not in part_of(SECTION, {"attack_roc": roc}).introduction


def test_what_the_records_do_not_have_is_left_out_with_a_sentence():
    found, _ = compared(false=False, holdout=False)
    (chapter,) = [one for one in part(found).chapters if one.id == "checkpoints"]
    assert "No record of mine is in the split holdout" in chapter.after
    assert "No forget record of mine has false answers" in chapter.after
    assert (
        not {"forget_quality", "mia_loss", "privleak"}
        & found[OPEN_UNLEARNING.name]["half-0"].keys()
    )
    assert "truth_ratio" not in set(found["checkpoint_metrics"]["metric"])


def test_attacks_on_holdout_records_of_one_group_have_no_intervals():
    """The report says so, and names the AUC alone."""
    scores = [scored(name, name, seed) for seed, name in enumerate(LOSSES)]
    for frame in scores:
        frame.loc[frame["split"] == "holdout", "group"] = "web"
    roles = {"original": ["original"], "retrained": ["retrained"], "unlearned": ["half", "ascent"]}
    found = compare(scores, model="npo", language="mine", roles=roles, false_positive_rates=[0.1])
    rows = found["checkpoint_membership"]
    assert rows["lower"].isna().all()
    assert rows.groupby("statistic")["value"].count().to_dict() == {"auc": 16, "tpr@0.1": 0}
    (chapter,) = [one for one in part(found).chapters if one.id == "checkpoints"]
    opening = part(found).opening
    assert "forget from holdout records of mine has no intervals" in chapter.after
    assert "with an AUC of 1, and under" in opening


def test_without_a_clear_gap_the_losses_and_likely_causes_are_told():
    """On the screen, in the report and on its first page. Here the gap leads to an original."""
    scores = {name: scored(name, "original", seed) for seed, name in enumerate("abc")}
    roles = dict(zip(ROLES, (["a"], ["b"], ["c"]), strict=True))
    how = {"model": "npo", "language": "mine", "roles": roles, "false_positive_rates": [0.1]}
    with pytest.warns(Notice) as shown:
        found = compare([*scores.values()], **how)
    assert found["checkpoint_gaps"]["share"].isna().all()
    before, after = (number(scores[name]["loss"][:N].mean()) for name in "ab")
    why = (
        f"the mean loss of {N} forget records is {before} under the original models and {after} "
        "under the retrained ones; likely causes, the likeliest first: the template (or chat)"
    )
    (line,) = [str(one.message) for one in shown]
    assert line.startswith("audit/checkpoints/npo: the gap is not clear")
    opening = part(found).opening
    (sentence,) = sentences(found)
    for said in (line, opening, sentence.text):
        assert why in said
        assert said.index("template") < said.index("end token") < said.index("too few")
    assert "What c closed of the gap" in sentence.text


def test_a_clear_gap_gives_no_notice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared(1, 1, ("half",))


def test_four_models_of_each_kind_are_tested_and_eight_have_a_placebo():
    found, _ = compared(4, 8, ("half",) * 4)
    rows = found["checkpoint_tests"].set_index(["side", "statistic"])
    assert rows.loc[("unlearned", "mean_difference"), "p_value"] < 0.05
    assert rows.loc[("placebo", "mean_difference"), "p_value"] > 0.05
    assert rows.loc[("unlearned", "joint_errors"), "value"] == 0
    assert rows.loc[("unlearned", "epsilon_bound"), "attainable"] > 0
    assert rows.loc["placebo"]["n_unlearned"].eq(4).all()
    shares = shares_of(found)
    pooled = shares.loc[("all", "forget")]
    assert pooled["share"] == pytest.approx(0.5, abs=0.05)
    assert pooled["lower"] < 0.5 < pooled["upper"]
    (chapter,) = [one for one in part(found).chapters if one.id == "checkpoints"]
    opening = part(found).opening
    assert re.search(r"the placebo, of 0\.\d+ to 0\.\d+\.", opening)
    assert "was not tested" not in chapter.after
    few, _ = compared(1, 3, ("half",) * 4)
    assert few["checkpoint_tests"].empty


def test_models_that_say_the_same_are_refused():
    frames = [scored(name, "half", 0) for name in ("a", "b", "c")]
    roles = {"original": ["a"], "retrained": ["b"], "unlearned": ["c"]}
    how = {"model": "npo", "language": "mine", "roles": roles, "false_positive_rates": [0.1]}
    said = message(lambda: compare(frames, **how))
    assert "audit/checkpoints/npo: b and a give every answer exactly the same loss" in said


def test_models_of_two_tokenizers_are_refused():
    frames = [scored(name, "half", seed) for seed, name in enumerate("abc")]
    frames[2] = frames[2].assign(n_tokens=6)
    roles = {"original": ["a"], "retrained": ["b"], "unlearned": ["c"]}
    how = {"model": "npo", "language": "mine", "roles": roles, "false_positive_rates": [0.1]}
    said = message(lambda: compare(frames, **how))
    assert "c cuts answers into other tokens than a" in said


def rise(share, lower, upper):
    return SimpleNamespace(share=share, lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("own", "other", "words"),
    [
        (rise(1.5, 1.24, 1.77), rise(1.29, 1.01, 1.58), "not told from general damage"),
        (rise(1.5, 1.24, 1.77), rise(0.3, 0.1, 0.5), "more than retraining, and other records"),
        (rise(1.5, 1.24, 1.77), rise(0.0, -0.2, 0.2), "more than retraining"),
        (rise(0.9, 0.8, 1.0), rise(0.0, -0.2, 0.2), ""),
        (rise(0.1, -0.2, 0.4), rise(0.3, 0.1, 0.5), ""),
    ],
)
def test_a_share_is_read_beside_the_rise_of_other_records(own, other, words):
    found = report_rows._read(own, [other])
    assert (found == "") == (words == "")
    assert words in found
