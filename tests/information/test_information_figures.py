"""The figures of information measures, from small tables: labels, bars, and what is missing."""

import itertools
import tempfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

from helpers import information_worlds as worlds
from helpers.drawn import words_around
from palimpsest import tables
from palimpsest.figures import style
from palimpsest.information import kinds
from palimpsest.information.activation_scores import of_group
from palimpsest.information.figures import FIGURES, palette
from palimpsest.information.figures.distributions import layers_of
from palimpsest.information.kinds import MARKERS, SHUFFLES
from palimpsest.lazy_import import named
from palimpsest.number_format import number

pytestmark = pytest.mark.figures

BY_NAME = {figure.name: figure for figure in FIGURES}
N_SHARES = 2 * len(worlds.SHARES)


def made(seeds=3, models=worlds.ONE_MODEL, **frames):
    """Tables by the name of their kind; some may be given."""
    information = frames.get("information", worlds.information(worlds.EXPECTED, 1, seeds, models))
    return {
        "information": information,
        "neurons": worlds.neurons(information, 1),
        "pairs": worlds.pairs(information, 1),
        "epochs": worlds.epochs([0.2] * seeds),
        **given(seeds),
        **frames,
    }


@cache
def given(seeds: int, with_doses: bool = True, per_seed: int = 5):
    """Tables of given activations, by the name of their kind."""
    doses = worlds.SHARES if with_doses else (None,) * per_seed
    models = worlds.given_models(seeds, doses, accuracies=with_doses)
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{each['name']}.npz" for each in models]
        for place, (file, each) in enumerate(zip(files, models, strict=True)):
            np.savez(file, **worlds.given_arrays(place % len(doses), each["seed"]))
        return of_group(files, models, "mine", 1, bins=100, neighbours=3, pairs="all")


def draw(name, **frames):
    """A figure, from made tables."""
    figure, found = BY_NAME[name], made(**frames)
    return named(figure.draw)(*(found[kind.name] for kind in figure.tables))


def said(figure):
    """All visible words of a figure."""
    found = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible())
    return " ".join(" ".join(text.get_text() for text in found).split())


def areas(axes):
    """The distributions of a panel, by their colour."""
    bodies = [each for each in axes.collections if isinstance(each, PolyCollection)]
    return [to_hex(body.get_facecolor()[0]) for body in bodies]


def bars(axes):
    """The lengths of all error bars of a panel."""
    found = [holder[2] for holder in axes.containers if isinstance(holder, ErrorbarContainer)]
    ends = [part for lines in found for line in lines for part in line.get_segments()]
    return np.array([np.ptp(part, axis=0).max() for part in ends])


def has_categories(axes):
    shared = axes.get_shared_y_axes().get_siblings(axes)
    labels = [label.get_text() for other in shared for label in other.get_yticklabels()]
    return any(label[:1].isalpha() for label in labels)


def shown_panels(figure):
    return [axes for axes in figure.axes if axes.axison]


@pytest.mark.parametrize("kind", [kinds.NEURONS, kinds.PAIRS], ids=lambda kind: kind.name)
def test_the_tables_tested_on_are_of_their_kinds(kind, tmp_path):
    tables.write(tmp_path / "table.parquet", made()[kind.name], kind)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_figure_is_drawn(name, tmp_path):
    """Axes have names, nothing is cut off, and the caption has two sentences."""
    figure = draw(name)
    style.save(figure, tmp_path / "figure.svg")
    assert (tmp_path / "figure.png").stat().st_size > 5000
    for axes, which in itertools.product(shown_panels(figure), "xy"):
        is_bar = axes.get_label() == "<colorbar>"
        named = any(words_around(axes, which)) or (which == "y" and has_categories(axes))
        assert named or (is_bar and which == "x")
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    assert min(drawn.x0, drawn.y0, width - drawn.x1, height - drawn.y1) > -0.01
    assert BY_NAME[name].caption.count(". ") == 1
    assert ". See " in BY_NAME[name].caption


@pytest.mark.parametrize("name", ["information_shares", "information_associations"])
def test_bars_are_explained_and_one_seed_has_none(name):
    figure = draw(name)
    assert "bars: 95 % intervals over the seeds" in said(figure)
    assert any(any(bars(axes) > 0) for axes in figure.axes)
    figure = draw(name, seeds=1)
    assert "One seed: points without bars" in said(figure)
    assert all(all(bars(axes) == 0) for axes in figure.axes)


@pytest.mark.parametrize(
    ("name", "unit"), [("information_entropy", "entropy (nats)"), ("information_pairs", "(nats)")]
)
def test_distributions_have_a_panel_for_each_layer(name, unit):
    """Each share is one area, from light to full; those of permuted strings are grey."""
    figure = draw(name, models=worlds.DEPTHS)
    panels = shown_panels(figure)
    assert len(panels) == 2 * sum(worlds.DEPTHS.values())
    assert unit in said(figure)
    for axes in panels:
        own = [colour for colour in areas(axes) if colour != to_hex(palette.PLACEBO)]
        assert len(own) == len(set(own)) == len(worlds.SHARES)
        has_placebo = name == "information_pairs"
        assert (to_hex(palette.PLACEBO) in areas(axes)) == has_placebo
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles.count("layer 3 (last)") == 2
    assert "layer 0 (last)" not in titles


def test_both_interventions_of_a_model_have_one_axis():
    panels = shown_panels(draw("information_entropy"))
    assert len({axes.get_ylim() for axes in panels}) == 1


def test_neurons_that_do_not_vary_are_left_out():
    table = made()["neurons"]
    constant = table["neuron"] < 20
    fewer = table.assign(is_degenerate=constant, entropy=table["entropy"].where(~constant, 0.0))
    assert min(axes.get_ylim()[0] for axes in draw("information_entropy", neurons=fewer).axes) > 0.5
    same = draw("information_entropy", neurons=table.assign(entropy=2.0))
    assert not any(areas(axes) for axes in same.axes)


def test_many_layers_are_shown_by_four():
    rows = pd.DataFrame({"layer": range(24)})
    assert layers_of(rows) == [0, 8, 15, 23]
    assert layers_of(rows[:3]) == [0, 1, 2]


def test_the_shown_site_is_that_of_the_claims():
    table = worlds.information(worlds.EXPECTED, 1, positions=("mean", "last"))
    both = pd.concat([table.assign(place="residual"), table])
    found = palette.shown(both)
    assert set(found["place"]) == {"mlp"}
    assert set(found["position"]) == {"last"}
    only = palette.shown(both[both["position"] == "mean"].query("place == 'residual'"))
    assert "residual stream, mean over the string" in palette.site_note(only)


def test_shares_are_read_from_variants():
    found = palette.with_share(pd.DataFrame({"variant": ["shuffled-25", "marked-100", "marked-0"]}))
    assert list(found["intervention"]) == [SHUFFLES, MARKERS, MARKERS]
    assert list(found["share"]) == [0.25, 1.0, 0.0]


def test_means_by_share_have_a_line_for_each_depth():
    figure = draw("information_shares", models=worlds.DEPTHS)
    assert len(figure.axes) == 8
    words = said(figure)
    assert all(f"{n} layers" in words for n in worlds.DEPTHS.values())
    assert "marker disagrees" in words
    table = made()["information"]
    figure = draw("information_shares")
    found = table[(table["intervention"] == SHUFFLES) & (table["share"] == 1)]["entropy"].mean()
    line = figure.axes[1].containers[0][0]
    assert line.get_ydata()[-1] == pytest.approx(found)


@pytest.mark.parametrize("name", BY_NAME)
def test_one_intervention_alone_is_drawn(name):
    table = made()["information"]
    figure = draw(name, information=table[table["intervention"] == SHUFFLES])
    assert "alpha (share" not in said(figure)


def test_a_correlation_that_is_undefined_has_no_point():
    table = made()["information"]
    all_points = draw("information_associations")
    figure = draw("information_associations", information=table.assign(memorised=0.5))
    n_points = [sum(len(axes.containers) for axes in each.axes) for each in (all_points, figure)]
    # Two measures, a placebo and the share, in four panels
    assert n_points[0] - n_points[1] == 16


def test_colours_are_those_of_no_measure_of_memorisation():
    own = [look.colour for look in (*palette.INTERVENTIONS.values(), *palette.MEASURES.values())]
    assert len(set(own)) == 4
    assert not {to_hex(look.colour) for look in style.MEASURES.values()} & set(map(to_hex, own))


def test_given_models_with_doses_stand_in_their_order():
    """Each dose is one area; the placebo is grey; taus stand above the panels."""
    figure = draw("given_distributions")
    panels = shown_panels(figure)
    assert len(panels) == 2 * 3
    assert [label.get_text() for label in panels[-1].get_xticklabels()] == [
        "0", "0.25", "0.5", "0.75", "1"
    ]  # fmt: skip
    assert len(areas(panels[0])) == 5
    assert areas(panels[-1]).count(to_hex(palette.PLACEBO)) == 5
    row = given(3)["given_associations"].set_index(["score", "other"]).loc["entropy", "accuracy"]
    assert f"tau {number(row['tau'])}" in said(draw("given_scores"))


def test_given_models_without_doses_stand_by_name():
    tables = given(1, with_doses=False, per_seed=2)
    words = said(draw("given_distributions", **tables))
    assert "model-0-1" in words
    assert "dose" not in words.replace("of a dose", "")
    words = said(draw("given_scores", **tables))
    assert "model-0-1" in words
    assert "tau 0" not in words


def test_given_models_without_pairs_are_drawn():
    """A layer may have one neuron that varies."""
    tables = given(3)
    empty = {**tables, "given_pairs": tables["given_pairs"].head(0)}
    panels = shown_panels(draw("given_distributions", **empty))
    assert not areas(panels[2])
    assert areas(panels[0])
