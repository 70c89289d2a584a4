"""The figure of the atlas, from small tables."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text

from palimpsest.atlas import kinds
from palimpsest.atlas.contenders import CONTENDERS, GRADIENTS, RETRAINING
from palimpsest.atlas.figures import atlas as of_strings
from palimpsest.atlas.figures import atlas_whose as of_pairs
from palimpsest.atlas.figures.atlas import atlas
from palimpsest.atlas.figures.atlas_foretold import LEAST, atlas_foretold
from palimpsest.atlas.figures.atlas_whose import atlas_whose
from palimpsest.atlas.report import best_rows, part, rows_of_all_cells
from palimpsest.atlas.sentences import sentences
from palimpsest.atlas.titles import TITLES, title_of
from palimpsest.figures import style
from palimpsest.statistics import student

pytestmark = pytest.mark.figures

NEEDS = {"retraining": RETRAINING}
MEASURES = ("retraining", "recollection", "ek-fac", "copies")


QUESTIONS = {**of_strings.QUESTIONS, **of_pairs.QUESTIONS}


def table(models=("opt-1.3b-twin", "llama-3.2-1b-twin"), sizes=(64,), questions=QUESTIONS):
    chance = np.random.default_rng(0)
    rows = [
        {
            **{"model": model, "language": "L2", "size": size, "measure": measure},
            **{
                "needs": NEEDS.get(measure, "all losses"),
                "question": question,
                "statistic": "rank correlation",
            },
            **{"value": value, "lower": value - 0.1, "upper": value + 0.1, "n_seeds": 3},
            **{"ceiling": 0.9, "placebo": 0.02, "share_of_ceiling": value, "share_lower": 0.1},
            **{"share_upper": 0.9, "cost": 1.25 if measure != "retraining" else 104.0},
        }
        for model, size, question, measure in itertools.product(models, sizes, questions, MEASURES)
        for value in [chance.random()]
    ]
    return pd.DataFrame(rows)[kinds.ATLAS.names]


def words_in(figure) -> str:
    style.settle(figure)
    return " ".join(text.get_text() for text in figure.findobj(Text))


def foretelling(seeds=(3, 4, 5), **values) -> pd.DataFrame:
    found = {"r_squared": 0.6, "r_squared_by_rarity": 0.5, "r_squared_by_mean": -0.1}
    return pd.DataFrame(
        [
            {
                **{"model": model, "language": "L2", "size": 64, "seed": seed, "new": new},
                **{"outcome": outcome, **found, "placebo": -0.8, **values},
            }
            for model, new in (("opt-1.3b-twin", "seed"), ("llama-3.2-3b-twin", "model"))
            for outcome in kinds.OUTCOMES
            for seed in seeds
        ]
    )


def test_what_was_foretold_stands_beside_what_says_less():
    """A panel for each outcome, a row for each model; a value beyond the axis is at its edge."""
    chance = np.random.default_rng(0)
    rows = foretelling().assign(r_squared=0.6 + 0.1 * chance.standard_normal(18), placebo=-3.0)
    figure = atlas_foretold(rows)
    panels = [axes for axes in figure.findobj(plt.Axes) if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == list(kinds.OUTCOMES)
    own = rows[(rows["model"] == "opt-1.3b-twin") & (rows["outcome"] == kinds.OUTCOMES[0])]
    drawn = [line.get_xdata() for line in panels[0].lines]
    interval = student(own["r_squared"])
    assert any(np.allclose(x, interval.mean) for x in drawn if len(x) == 1)
    assert any(np.allclose(x, [interval.lower, interval.upper]) for x in drawn if len(x) == 2)
    assert sum(np.allclose(x, LEAST) for x in drawn if len(x) == 1) == 2
    words = words_in(figure)
    for shown in ("llama-3.2-3b-twin, 64 strings", "(new: model)", "placebo", "3 seeds"):
        assert shown in words


def test_one_seed_has_no_interval_and_what_is_undefined_no_mark():
    rows = foretelling(seeds=[3], r_squared_by_mean=np.nan)
    panels = [axes for axes in atlas_foretold(rows).findobj(plt.Axes) if axes.get_title(loc="left")]
    assert all(len(line.get_xdata()) == 1 for line in panels[0].lines[1:])
    assert len(panels[0].lines) == 1 + 2 * 3


@pytest.mark.parametrize("rows", [table(), table(models=["opt-1.3b-twin"], sizes=(16, 64))])
def test_measures_have_names_costs_and_a_ceiling(rows):
    words = words_in(atlas(rows)) + words_in(atlas_whose(rows))
    for shown in ("Loss (recollection) (1.25)", "EK-FAC (1.25)", "ceiling", "placebo"):
        assert shown in words
    for question in QUESTIONS.values():
        assert question in words


def test_what_is_undefined_is_not_drawn():
    rows = table()
    rows.loc[rows["measure"] == "copies", ["value", "lower", "upper", "placebo"]] = np.nan
    assert "Copies (1.25)" in words_in(atlas(rows))


def test_a_question_that_was_not_asked_has_no_panel():
    asked = list(QUESTIONS)[:2]
    words = words_in(atlas(table(questions=asked)))
    assert QUESTIONS["how much"] in words
    assert QUESTIONS["whose"] not in words


def test_every_measure_has_a_title():
    assert {contender.name for contender in CONTENDERS} <= set(TITLES)
    assert set(GRADIENTS) <= set(TITLES)
    assert title_of("mine") == "mine"


# The report


def test_the_report_shows_the_best_measures_and_the_loss():
    rows = best_rows(table(models=["opt-1.3b-twin"], questions=["how much"]))
    values = [float(row["value"].split()[0]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert {row["measure"] for row in rows} == {"Loss (recollection)", "EK-FAC", "Copies"}
    html = str(part({kinds.ATLAS.name: table()}).chapters[0].after)
    assert html.count("<tr>") - 1 == len(best_rows(table()))
    assert not part({}).chapters[0].before


def test_the_report_says_what_holds_in_all_cells():
    rows = table(questions=["how much"])
    ends = {"recollection": (-0.9, -0.5), "copies": (0.1, 0.5), "ek-fac": (0.2, 0.9)}
    for measure, (lower, upper) in ends.items():
        rows.loc[rows["measure"] == measure, ["lower", "upper"]] = lower, upper
    rows.loc[rows.index[rows["measure"] == "ek-fac"][0], "lower"] = -0.1
    (found,) = rows_of_all_cells(rows)
    assert (found["always"], found["wrong"]) == ("Copies", "Loss (recollection)")
    assert found["cells"] == "2"
    html = str(part({kinds.ATLAS.name: rows}).chapters[0].before)
    assert "The wrong way round" in html


def test_the_first_page_says_the_best_measure_with_ceiling_placebo_and_loss():
    rows = table(models=["opt-1.3b-twin"])
    rows.loc[rows["measure"] == "copies", "value"] = 0.99
    (said,) = sentences({kinds.ATLAS.name: rows})
    assert said.text.startswith(
        "Copies orders strings of L2 under opt-1.3b-twin, trained on 64, most"
    )
    assert "0.99 [" in said.text
    for words in ("Retraining once more: 0.9;", "placebo: 0.02;", "a low loss: ", "of 3 measures"):
        assert words in said.note
    assert not list(sentences({}))


def test_without_an_order_the_first_page_says_what_would_decide():
    (said,) = sentences({kinds.ATLAS.name: table(models=["m"]).assign(value=np.nan)})
    assert "has no order" in said.text
    assert "would decide" in said.note
