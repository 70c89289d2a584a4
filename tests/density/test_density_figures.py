"""The figures of density, from small tables: labels, intervals, one seed, and what is missing."""

import importlib
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

from helpers.drawn import words_around
from palimpsest import tables
from palimpsest.density import kinds
from palimpsest.density.bins import text_bins
from palimpsest.density.figures import FIGURES, palette
from palimpsest.density.figures.density_truth import density_truth
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked
from palimpsest.errors import UserError
from palimpsest.figures import style
from palimpsest.figures.render import render
from palimpsest.lazy_import import named

pytestmark = pytest.mark.figures

SEEDS = (0, 1, 2)
STUDY = {"model": "opt-1.3b-twin", "language": "L3", "size": 24}
PRODUCTIONS = ["B4 C1_1 E4 T1_1", "B4 C1_2 E4 T1_2", "B4 C1_3 E4 T1_3"]
SETTINGS = [("gaussian", 0.1), ("gaussian", 0.5), ("exponential", 0.01), ("exponential", 1.0)]
SHOWN = {"kernel": "gaussian", "bandwidth": 0.1}
NEVER_STARTS = "recollection_accuracy"
FEW_START = "bayes"
ROLES = [kinds.LEAKED] * 3 + [kinds.PLACEBO] * 3 + [kinds.NEVER] * 6
BY_NAME = {figure.name: figure for figure in FIGURES}
OF_TEXT = {"language": "wiki", "embedding": "a-model"}


def numbers(n):
    return np.random.default_rng(n).normal(size=n)


def leakage(seeds):
    about = itertools.product(seeds, LEAK_CONDITIONS, enumerate(ROLES), kinds.EMBEDDINGS_OF_STRINGS)
    rows = [
        {
            **STUDY, "seed": seed, "variant": leaked(leak), "string_id": f"{seed}{place:05x}",
            "group": PRODUCTIONS[place % 3], "length": 8 + place, "string_role": role,
            "n_copies": leak.n_copies, "paraphrases": leak.paraphrases,
            "effective_epochs": 12 * sum(leak) * (role == kinds.LEAKED),
            "answer_right": (place + seed) % 3 == 0, "n_choices": 4,
            "embedding": embedding, **SHOWN,
        }
        for seed, leak, (place, role), embedding in about
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    loss = 1 + 0.1 * numbers(len(table)) - 0.01 * table["effective_epochs"]
    return table.assign(
        loss=loss,
        perplexity=np.exp(loss),
        log_density=-3 - 10 * (loss - 1),
        nearest=0.8 * loss,
        mean_distance=loss,
    )[kinds.LEAKAGE.names]


def grid(columns, **values):
    """A row for every combination of the values."""
    rows = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
    return pd.DataFrame(rows).assign(**columns)


def settings(**values):
    """A row for every combination of the values and of kernels with their bandwidths."""
    table = grid({}, **values, of=SETTINGS)
    kernel, bandwidth = zip(*table.pop("of"), strict=True)
    return table.assign(kernel=kernel, bandwidth=bandwidth)


def estimators(**values):
    table = settings(**values, embedding=kinds.EMBEDDINGS_OF_STRINGS)
    table = table.rename(columns={"kernel": "estimator", "bandwidth": "bandwidth_or_k"})
    first = table.groupby([*values, "embedding"], sort=False).head(1)
    return pd.concat(
        [table, first.assign(estimator=kinds.TOP_K, bandwidth_or_k=5.0)], ignore_index=True
    )


def separation(seeds):
    table = estimators(seed=seeds, n_copies=[0, 1], paraphrases=[0, 3])
    auc = 0.7 + 0.1 * np.tanh(numbers(len(table)))
    return table.assign(**STUDY, auc=auc, placebo=auc - 0.2, n_strings=12)[kinds.SEPARATION.names]


def by_heart(seeds):
    """Leaked strings with a copy are answered right in the end, and others are not."""
    copies = {"n_copies": [0, 1], "paraphrases": [0, 1, 2, 3]}
    table = grid(STUDY, seed=seeds, **copies, string_role=kinds.TESTED, epoch=[0, 5, 10])
    learnt = (table["string_role"] == kinds.LEAKED) * table["n_copies"] * table["epoch"] / 10
    right = 0.25 + 0.75 * learnt
    loss = 2 - learnt + 0.1 * table["seed"]
    return table.assign(loss=loss, answer_right=right, n_strings=4)[kinds.BY_HEART.names]


def left_out(seeds):
    found = grid(
        {**STUDY, **SHOWN, "n_strings": 4},
        seed=seeds, left_out=PRODUCTIONS, group=PRODUCTIONS,
        embedding=kinds.EMBEDDINGS_OF_STRINGS,
    )  # fmt: skip
    x = numbers(len(found))
    return found.assign(log_density=x, loss=x / 10, answer_right=0.0)[kinds.LEFT_OUT.names]


def regressions(_):
    terms = {
        kinds.LEAK_CONDITION: ["exact copy", "paraphrases, linear"],
        kinds.ON_DENSITY: ["density"],
        kinds.ON_BOTH: ["density", "mean distance"],
    }
    parts = []
    for regression, names in terms.items():
        some = {"predictor": ["raw", "log"], "embedding": kinds.EMBEDDINGS_OF_STRINGS}
        if regression == kinds.LEAK_CONDITION:
            some = {"predictor": [None], "embedding": [None]}
        part = grid(
            {**STUDY, "regression": regression, "singular": False, "n_rows": 90},
            string_role=[kinds.LEAKED, kinds.PLACEBO], outcome=[kinds.PERPLEXITY, kinds.ACCURACY],
            term=["intercept", *names], **some,
        )  # fmt: skip
        setting = SHOWN if regression != kinds.LEAK_CONDITION else dict.fromkeys(SHOWN)
        parts.append(part.assign(**setting))
    table = pd.concat([part.astype({"bandwidth": float}) for part in parts], ignore_index=True)
    x = numbers(len(table))
    is_known = ~((table["outcome"] == kinds.ACCURACY) & (table["term"] == "mean distance"))
    values = {"estimate": x, "std_error": 0.3, "statistic": x / 0.3, "p_value": np.abs(x) / 3}
    values = {name: np.where(is_known, value, np.nan) for name, value in values.items()}
    df = np.where(table["outcome"] == kinds.PERPLEXITY, 20.0, np.nan)
    ends = {"effect": values["estimate"], "lower": values["estimate"] - 0.6}
    ends["upper"] = values["estimate"] + 0.7
    return table.assign(
        **values, **ends, df=df, p_kind="permutation", model_p_value=np.nan, converged=is_known
    )[kinds.REGRESSIONS.names]


def density_bins(_):
    table = grid(
        {**STUDY, **SHOWN, "shortest": 9, "longest": 15, "n_strings": 6},
        embedding=kinds.EMBEDDINGS_OF_STRINGS, part=["exact", "distance"],
        outcome=[kinds.PERPLEXITY, kinds.ACCURACY], bin=[1, 2, 3, 4, 5],
    )  # fmt: skip
    x = table["bin"].to_numpy(float)
    y = np.where(table["outcome"] == kinds.ACCURACY, x / 9, 3 - 0.2 * x)
    found = table.assign(mean_x=x - 9, mean_y=y, lower=y - 0.05, upper=y + 0.05)
    return found[kinds.DENSITY_BINS.names]


def truth(seeds):
    table = estimators(seed=seeds, string_role=[kinds.TRAINED, kinds.UNSEEN])
    length = table.groupby(["seed", "string_role"]).head(1)
    length = length.assign(embedding=None, estimator=kinds.LENGTH, bandwidth_or_k=np.nan)
    found = pd.concat([table, length], ignore_index=True)
    x = np.tanh(numbers(len(found)))
    given = np.where(found["estimator"] == kinds.LENGTH, np.nan, x / 2)
    return found.assign(
        **STUDY, variant="base", correlation=x, given_length=given, n_strings=24
    )[kinds.TRUTH.names]  # fmt: skip


def memorised(seeds):
    table = settings(
        seed=seeds, string_role=[kinds.TRAINED, kinds.UNSEEN], measure=list(style.MEASURES),
        embedding=kinds.EMBEDDINGS_OF_STRINGS,
    )  # fmt: skip
    starts = table["measure"] != NEVER_STARTS
    x = np.where(starts, np.tanh(numbers(len(table))), np.nan)
    never = np.where(starts, 0.4, 1.0)
    late = np.where(table["measure"] == FEW_START, 0.9, never)
    return table.assign(
        **STUDY, variant="base", evidence="constant", correlation=x, given_log_prob=x / 2,
        association=x / 3, share_never_memorised=never, share_censored=late,
        association_censored=x / 2, n_strings=24,
    )[kinds.MEMORISED.names]  # fmt: skip


def text_density(_):
    table = settings(segment_id=[f"{place:04x}" for place in range(30)])
    x = numbers(len(table))
    parts = dict.fromkeys(["log_density", "log_local", "log_random", "log_approximate"], x - 9)
    parts["local_share"] = 0.5
    return table.assign(
        **OF_TEXT, query_set="queries", id="1", text="a", n_characters=200, document=1,
        perplexity=np.exp(x), response_perplexity=np.nan, **parts,
        k=10, nearest=0.2, mean_distance=0.5 + x / 20,
    )[kinds.TEXT_DENSITY.names]  # fmt: skip


MADE = {
    kinds.LEAKAGE: leakage, kinds.BY_HEART: by_heart, kinds.SEPARATION: separation,
    kinds.LEFT_OUT: left_out,
    kinds.REGRESSIONS: regressions, kinds.DENSITY_BINS: density_bins, kinds.TRUTH: truth,
    kinds.MEMORISED: memorised, kinds.TEXT_DENSITY: text_density,
}  # fmt: skip


def draw(name, seeds=SEEDS, **frames):
    """A figure, from made tables; some may be given by the name of their kind."""
    figure = BY_NAME[name]
    given = [frames.get(kind.name, MADE[kind](seeds)) for kind in figure.tables]
    return named(figure.draw)(*given)


def said(figure):
    """All visible words of a figure."""
    found = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible())
    return " ".join(" ".join(text.get_text() for text in found).split())


def has_categories(axes, which):
    shared = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    labels = [label for other in shared for label in getattr(other, f"get_{which}ticklabels")()]
    return any(label.get_text()[:1].isalpha() for label in labels)


def markers(axes, colour, fill):
    """The number of points with this colour and this fill."""
    return sum(
        len(line.get_xdata())
        for line in axes.get_lines()
        if line.get_marker() in "osD^"
        and to_hex(line.get_markeredgecolor()) == to_hex(colour)
        and to_hex(line.get_markerfacecolor()) == to_hex(fill)
    )


def bar_lengths(axes):
    """The lengths of all error bars of a panel."""
    bars = [holder[2] for holder in axes.containers if isinstance(holder, ErrorbarContainer)]
    ends = [part for lines in bars for line in lines for part in line.get_segments()]
    return np.array([np.ptp(part, axis=0).max() for part in ends])


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.name)
def test_the_tables_tested_on_are_of_their_kinds(kind, tmp_path):
    tables.write(tmp_path / "table.parquet", MADE[kind](SEEDS), kind)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_figure_is_drawn(name, tmp_path):
    """Axes have names, nothing is cut off, and the caption has two sentences."""
    figure = draw(name)
    style.save(figure, tmp_path / "figure.svg")
    assert (tmp_path / "figure.png").stat().st_size > 5000
    for axes, which in itertools.product(figure.axes, "xy"):
        assert any(words_around(axes, which)) or has_categories(axes, which)
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) > -0.01
    assert BY_NAME[name].caption.count(". ") == 1


OVER_SEEDS = [name for name, figure in BY_NAME.items() if "seed" in figure.tables[0].names]
WITHOUT_BARS = {"density_leakage", "density_neighbours"}  # intervals in words, and none


@pytest.mark.parametrize("name", [name for name in OVER_SEEDS if name not in WITHOUT_BARS])
def test_bars_are_explained_and_one_seed_has_none(name):
    figure = draw(name)
    assert "bars: 95 % intervals over the seeds" in said(figure)
    assert any(any(bar_lengths(axes) > 0) for axes in figure.axes)
    figure = draw(name, SEEDS[:1])
    assert "One seed: points without bars" in said(figure)
    for axes in figure.axes:
        if name != "effective_epochs" or axes.get_title(loc="left").startswith("what is known"):
            assert all(bar_lengths(axes) == 0)


def test_a_statistic_of_one_seed_has_no_interval():
    assert " to " in draw("density_leakage").axes[0].get_title(loc="left")
    assert " to " not in draw("density_leakage", SEEDS[:1]).axes[0].get_title(loc="left")


def test_colours_of_density_are_those_of_no_measure():
    own = [look.colour for look in (*palette.STRINGS.values(), *palette.EMBEDDINGS.values())]
    measures = {to_hex(look.colour) for look in style.MEASURES.values()}
    assert len(set(own)) == len(own) == 5
    assert not measures & {to_hex(colour) for colour in own}


def test_every_test_string_is_a_point_or_counted_below_the_panel():
    table = leakage(SEEDS)
    table.loc[table.index[::97], "log_density"] = -60.0
    figure = draw("density_leakage", leakage=table)
    points = sum(
        len(line.get_xdata())
        for axes in figure.axes
        for line in axes.get_lines()
        if line.get_marker() in "osD"
    )
    below = [text.get_text() for axes in figure.axes for text in axes.texts]
    counted = sum(int(text.removeprefix("↓ ")) for text in below)
    assert counted > 0
    assert points + counted == len(table)


def test_effective_epochs_stand_beside_bins_of_both_embeddings():
    figure = draw("effective_epochs")
    assert len(figure.axes) == 6
    colours = {look.colour for look in palette.EMBEDDINGS.values()}
    for axes in (*figure.axes[1:3], *figure.axes[4:]):
        (colour,) = {line.get_color() for line in axes.get_lines() if line.get_marker() in "o^"}
        assert colour in colours
        assert markers(axes, colour, colour) == 5
    assert "9 to 15 symbols" in said(figure)


@pytest.mark.parametrize("name", ["leakage_performance", "effective_epochs"])
def test_without_right_answers_there_is_no_panel_of_accuracy(name):
    """With answers, a dotted line is at the share of right guesses."""
    made = leakage(SEEDS)
    draws = getattr(importlib.import_module(f"palimpsest.density.figures.{name}"), name)
    more = [MADE[kinds.DENSITY_BINS](SEEDS)] if name == "effective_epochs" else []
    labels = [axes.get_ylabel() for axes in draws(made, *more).axes]
    assert any(label.startswith("accuracy") for label in labels)
    guesses = [line for axes in draws(made, *more).axes for line in axes.lines]
    assert any(set(np.atleast_1d(line.get_ydata())) == {0.25} for line in guesses)
    without = draws(made.assign(answer_right=None, n_choices=None), *more)
    labels = [axes.get_ylabel() for axes in without.axes]
    assert not any(label.startswith("accuracy") for label in labels)
    assert any(label.startswith("perplexity") for label in labels)


def test_leaked_strings_are_nearer_where_a_copy_is_trained_on():
    """Of the runs with all copies and paraphrases alone; each curve ends at a share of 1."""
    made = leakage(SEEDS)
    is_leaked = made["string_role"] == kinds.LEAKED
    fullest = (made["n_copies"] + made["paraphrases"]) == 4
    made["nearest"] = np.where(is_leaked & fullest, 0.0, np.where(fullest, 0.5, 9.0))
    figure = draw("density_neighbours", leakage=made)
    left = figure.axes[0]
    ends = {line.get_color(): line.get_xdata()[-1] for line in left.get_lines()}
    colours = [palette.STRINGS[role].colour for role in (kinds.LEAKED, kinds.NEVER)]
    assert [ends[colour] for colour in colours] == [0, 0.5]
    assert all(line.get_ydata()[-1] == 1 for axes in figure.axes for line in axes.get_lines())


def test_leaked_strings_are_learnt_and_others_are_not():
    figure = draw("learnt_by_heart")
    one_copy = figure.axes[0].get_lines()
    ends = {line.get_color(): (*line.get_xdata(), *line.get_ydata()) for line in one_copy}
    look = palette.STRINGS
    assert ends[look[kinds.LEAKED].colour] == (0, 5, 10, 0.25, 0.625, 1)
    assert ends[look[kinds.PLACEBO].colour] == (0, 5, 10, 0.25, 0.25, 0.25)
    silent = draw("learnt_by_heart", by_heart=by_heart(SEEDS).assign(answer_right=np.nan))
    assert len(silent.axes) == 2  # the loss alone


def test_lengths_that_count_are_those_of_the_bins():
    """The shaded lengths are the central half; without perplexities there is one panel."""
    made = text_density(SEEDS).assign(
        n_characters=lambda t: [100 + 3 * int(name, 16) for name in t["segment_id"]],
        perplexity=20.0,
    )
    figure = draw("text_density_lengths", text_density=made)
    found = text_bins(made)
    assert {"shortest", "longest"} <= set(found.columns)
    said_lengths = f"{found['shortest'].iloc[0]} to {found['longest'].iloc[0]} characters"
    assert said_lengths in said(figure)
    assert len(figure.axes) == 2
    alone = draw("text_density_lengths", text_density=made.assign(perplexity=np.nan))
    assert len(alone.axes) == 1


def test_separation_shows_paraphrases_alone_and_a_copy_alone():
    titles = [axes.get_title(loc="left") for axes in draw("density_separation").axes]
    assert titles[:2] == ["leaked: 3 paraphrases", "leaked: 1 copy"]
    table = separation(SEEDS)
    table = table[table["n_copies"] == 0]
    assert len(draw("density_separation", separation=table).axes) == 2


def test_strings_of_the_production_left_out_are_filled():
    for axes, colour in zip(
        draw("density_left_out").axes,
        [*(look.colour for look in palette.EMBEDDINGS.values()), style.INK, style.INK],
        strict=True,
    ):
        assert markers(axes, colour, colour) == len(PRODUCTIONS)
        assert markers(axes, colour, "white") == len(PRODUCTIONS) * (len(PRODUCTIONS) - 1)


def test_regressions_are_filled_where_significant_and_say_what_has_no_estimate():
    table = regressions(SEEDS)
    figure = draw("density_regressions", regressions=table)
    shown = table[table["term"] != "intercept"]
    for axes, outcome in zip(figure.axes, (kinds.PERPLEXITY, kinds.ACCURACY), strict=True):
        for strings in (kinds.LEAKED, kinds.PLACEBO):
            own = shown[(shown["outcome"] == outcome) & (shown["string_role"] == strings)]
            colour = palette.STRINGS[strings].colour
            assert markers(axes, colour, colour) == (own["p_value"] < 0.05).sum()
            assert markers(axes, colour, "white") == (own["p_value"] >= 0.05).sum()
        words = [text.get_text().strip() for text in axes.texts]
        unknown = shown.loc[shown["outcome"] == outcome, "effect"].isna().sum()
        assert words.count("no estimate") == unknown
    none = draw("density_regressions", regressions=table.assign(effect=np.nan))
    assert "no estimate" not in said(none)
    assert said(none).count("no term has an estimate") == len(figure.axes)


def test_bars_of_regressions_are_the_intervals_of_the_claims():
    """They reach from `lower` to `upper`, and say nothing of the model's standard error."""
    table = regressions(SEEDS)
    figure = draw("density_regressions", regressions=table)
    of_perplexity = table[(table["outcome"] == kinds.PERPLEXITY) & (table["term"] != "intercept")]
    bars = [
        tuple(round(x, 6) for x in segment[:, 0])
        for line in figure.axes[0].collections
        for segment in line.get_segments()
    ]
    for row in of_perplexity.itertuples():
        assert (round(row.lower, 6), round(row.upper, 6)) in bars


def test_an_effect_that_nothing_bounds_has_no_bar():
    """Few strings have few orders, and no effect is rejected."""
    table = regressions(SEEDS).assign(lower=-np.inf, upper=np.inf)
    figure = draw("density_regressions", regressions=table)
    low, high = figure.axes[0].get_xlim()
    assert np.isfinite([low, high]).all()
    assert "too few strings" in said(figure)


def test_truth_has_a_row_of_panels_for_each_study():
    table = truth(SEEDS)
    assert len(density_truth(table).axes) == 4
    several = pd.concat([table, table.assign(variant="leaked-0-0", size=72)])
    figure = density_truth(several)
    assert len(figure.axes) == 8
    assert "72 strings" in said(figure)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["gaussian 0.1", "gaussian 0.5", "exponential 0.01", "exponential 1",
                    "distance, k = 5", "length"]  # fmt: skip


def test_a_measure_that_never_starts_is_shown_as_such():
    figure = draw("density_memorised")
    panels = figure.axes[:-1]
    for axes in panels:
        words = [text.get_text() for text in axes.texts]
        assert sorted(words) == ["never starts"] * 2 + ["too few starts"] * 2
    silent = NEVER_STARTS, FEW_START
    colours = {style.MEASURES[name].colour for name in style.MEASURES if name not in silent}
    for colour in colours:
        assert markers(panels[0], colour, colour) == markers(panels[0], colour, "white") == 1
    assert "denser is earlier" in panels[0].get_xlabel()


def test_the_memorised_figure_shows_what_the_claims_compare():
    """The means of `association_censored` over all settings."""
    table = memorised(SEEDS)
    figure = draw("density_memorised", memorised=table)
    for axes, embedding in zip(figure.axes, kinds.EMBEDDINGS_OF_STRINGS, strict=False):
        own = table[(table["embedding"] == embedding) & (table["measure"] == "contextual")]
        shown = [round(x, 6) for line in axes.get_lines() for x in line.get_xdata()]
        for strings in (kinds.TRAINED, kinds.UNSEEN):
            mean = own.loc[own["string_role"] == strings, "association_censored"].mean()
            assert round(mean, 6) in shown


def test_a_text_shows_the_parts_of_its_density_and_a_reversed_distance():
    figure = draw("text_density")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["the nearest segments", "a random sample of the others",
                      "distance to the nearest"]  # fmt: skip
    low, high = figure.axes[-1].get_xlim()
    assert low > high
    assert "bandwidth 0.5" in said(figure)
    parts = dict.fromkeys(["log_local", "log_random", "log_approximate"], np.nan)
    whole = draw("text_density", text_density=text_density(SEEDS).assign(**parts))
    assert whole.axes[0].get_title(loc="left") == "the whole corpus"


def test_the_bins_of_a_text_are_those_of_its_table():
    density = text_density(SEEDS)
    rows = text_bins(density)
    rows = rows[(rows["kernel"] == "gaussian") & (rows["bandwidth"] == 0.5)]
    figure = draw("text_density", text_density=density)
    for axes, part in zip(figure.axes, ("local", "random", "distance"), strict=True):
        line = axes.get_lines()[1]
        own = rows[rows["part"] == part].sort_values("bin")
        assert list(line.get_xdata()) == pytest.approx(list(own["mean_x"]))
        assert list(line.get_ydata()) == pytest.approx(list(own["mean_y"]))


def test_every_set_of_queries_and_its_responses_have_a_row_of_panels():
    """Figures 5, 12 and 13: queries of one set, and then queries and responses of another."""
    first = text_density(SEEDS)
    answers = 40 - first["perplexity"].clip(0, 39)
    second = first.assign(query_set="asked", response_perplexity=answers)
    figure = draw("text_density", text_density=pd.concat([first, second]))
    labels = [axes.get_ylabel() for axes in figure.axes[::3]]
    assert labels == [
        "queries:\nperplexity per token", "asked:\nperplexity per token",
        "asked:\nperplexity per token\nof the response",
    ]  # fmt: skip
    lines = [axes.get_lines()[1].get_ydata() for axes in figure.axes[::3]]
    assert list(lines[0]) == pytest.approx(list(lines[1]))
    assert np.diff(lines[0])[0] * np.diff(lines[2])[0] < 0
    lengths = draw("text_density_lengths", text_density=pd.concat([first, second]))
    assert [axes.get_title(loc="left") for axes in lengths.axes[::2]] == ["queries", "asked"]


def test_a_text_with_too_few_queries_for_a_bin_shows_distributions():
    density = text_density(SEEDS)
    few = density[density["segment_id"].isin(density["segment_id"].unique()[:9])]
    assert text_bins(few).empty
    without = draw("text_density", text_density=few.assign(perplexity=np.nan))
    assert said(draw("text_density", text_density=few)) == said(without)


def test_too_few_test_strings_for_a_bin_are_said():
    rows = leakage(SEEDS)
    none = draw("effective_epochs", leakage=rows, density_bins=density_bins(SEEDS).iloc[:0])
    assert "too few test strings for bins of density" in said(none)


def test_a_text_without_a_language_model_shows_distributions(tmp_path):
    density = text_density(SEEDS).assign(perplexity=np.nan)
    tables.write(tmp_path / "density.parquet", density, kinds.TEXT_DENSITY)
    paths = {"text_density": tmp_path / "density.parquet"}
    render(BY_NAME["text_density"], paths, tmp_path / "figure.svg")
    assert "no language model" in (tmp_path / "figure.svg").read_text()


def test_a_figure_is_only_for_languages_that_have_its_tables():
    figure = BY_NAME["effective_epochs"]
    path = kinds.LEAKAGE.path.format(recipe="leakage", **STUDY)
    assert figure.languages([]) == []
    assert figure.languages([path]) == ["L3"]
    with pytest.raises(UserError, match="density_bins") as raised:
        figure.inputs([path], "L3")
    assert "\n" not in str(raised.value)
    assert BY_NAME["density_left_out"].languages([path]) == []
