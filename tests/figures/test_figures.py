"""What must hold of every figure, on small tables of every shape that a study can have."""

import itertools
import re

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from helpers.detector_worlds import judged
from helpers.drawn_titles import covering_titles
from helpers.record_worlds import shares as record_shares
from palimpsest import tables
from palimpsest.atlas.figures import FIGURES as ATLAS_FIGURES
from palimpsest.datasets.grammar import derivation_table
from palimpsest.density.figures import FIGURES as DENSITY_FIGURES
from palimpsest.errors import UserError
from palimpsest.figures import style
from palimpsest.figures.render import render
from palimpsest.figures.style import save
from palimpsest.information.figures import FIGURES as INFORMATION_FIGURES
from palimpsest.languages import Grammar
from palimpsest.lazy_import import named
from palimpsest.profiles.figures import FIGURES as PROFILE_FIGURES
from palimpsest.sections import FIGURES, KINDS
from palimpsest.unlearning.figures import FIGURES as UNLEARNING_FIGURES

EPOCHS = np.arange(0, 21, 2)
OPTIMUM = 8
MEASURES = list(style.MEASURES)
MODELS = ["pythia-1b-twin", "pythia-6.9b-twin", "opt-2.7b-twin"]
EVIDENCE = [
    ("recollection", "constant"),
    ("recollection_accuracy", "constant"),
    ("counterfactual", "same-frequency"),
    ("contextual", "same-frequency"),
    ("counterfactual", "retraining"),
    ("contextual", "retraining"),
    ("bayes", "language"),
]
SUMMARY = {
    "language": "L2",
    "n_rules": 21,
    "n_terminals": 9,
    "n_derivations": 2**36,
    "derivation_entropy": 7.1,
    "entropy": 6.99,
    "entropy_standard_error": 0.09,
    "expected_length": 72.0,
    "ambiguous": False,
}

# Every shape of a study: models, seeds, whether anything is ever memorised.
SHAPES = {
    "one model, one seed": (MODELS[:1], [0], True),
    "one model, three seeds": (MODELS[:1], [0, 1, 2], True),
    "three models, three seeds": (MODELS, [0, 1, 2], True),
    "nothing is memorised": (MODELS[:2], [0, 1], False),
}


def rows(models, seeds, **columns):
    """A row for every combination of model, seed, epoch and further values."""
    crossed = {"model": models, "seed": seeds, **columns, "epoch": EPOCHS}
    frame = pd.DataFrame(itertools.product(*crossed.values()), columns=list(crossed))
    return frame.assign(language="L2", size=64, variant="base")


def losses(frame):
    """Exponential decay in training; a test loss that is lowest at epoch 8."""
    shift = 0.02 * frame["seed"].fillna(0).astype(float)
    return frame.assign(
        train_loss=2.4 * np.exp(-frame["epoch"] / 5) + 0.02 + shift,
        test_loss=0.4 + ((frame["epoch"] - OPTIMUM) / 12.0) ** 2 + shift,
        optimal_test_loss=0.3,
        optimal_epoch=OPTIMUM,
        train_loss_distinct=2.4 * np.exp(-frame["epoch"] / 5) + 0.02 + shift,
        n_train=64,
        still_learning=False,
    )


def memorised(frame, ever):
    """A share that rises with the epochs, or stays at 0."""
    share = (frame["epoch"] / EPOCHS[-1]).clip(0, 1) * ever
    return frame.assign(
        share_memorised=share,
        mean_score=share**2,
        share_memorised_distinct=share,
        mean_score_distinct=share**2,
        share_memorised_unseen=share / 10,
        mean_score_unseen=share**2 / 10,
        below_distinct=share,
        margin_distinct=share**2,
        below_unseen=share / 8,
        margin_unseen=share**2 / 8,
        below_covered=share,
        below_unseen_covered=share / 8,
        share_memorised_perfect=0.0,
        mean_score_perfect=0.0,
        coverage=0.75,
        counterpart=None,
    )


def of_kind(frame, kind):
    return frame[KINDS[kind].names]


def language_sample(models, seeds, ever):
    frame = pd.DataFrame({"length": [70, 72, 72, 75], "count": [3, 20, 1, 1]})
    frame = frame.assign(language="L2", string_id=list("abcd"), text="1 2")
    return frame.assign(log_prob=[-6.0, -2.0, -800.0, -9.0], derivation_log_prob=np.nan)


def derivation(models, seeds, ever):
    """A string with a box for two words, and one box around them and a third word."""
    nodes = [  # parent, depth, symbol, begin, end, probability, surprise
        (None, 0, "S", 0, 3, 1.0, np.nan),
        (0, 1, "A", 0, 2, 0.25, np.nan),
        (1, 2, "a", 0, 1, np.nan, 1.4),
        (1, 2, "b", 1, 2, np.nan, 0.0),
        (0, 1, "language", 2, 3, np.nan, 0.0),
    ]
    columns = ["parent", "depth", "symbol", "begin", "end", "probability", "surprise"]
    frame = pd.DataFrame(nodes, columns=columns).astype({"parent": "Int64"})
    frame["rule"] = pd.array([0, 1, None, None, None], dtype="Int64")
    return frame.assign(language="L2", string_id="a", node=range(len(nodes)), log_prob=np.log(0.25))


def disagreement(models, seeds, ever):
    frame = rows(models, [*seeds, None], role=["s0", "s1", "s2"], of=EVIDENCE)
    frame["measure"], frame["evidence"] = zip(*frame.pop("of"), strict=True)
    frame = losses(frame.assign(seed=frame["seed"].astype("Int64")))
    retrained = frame["measure"].isin(["counterfactual", "contextual"])
    frame = frame.assign(
        string_id="a",
        count=frame["role"].map({"s0": 9, "s1": 2, "s2": 1}),
        log_prob=-4.0,
        optimal_loss=0.1,
        loss=frame["train_loss"],
        loss_without=frame["test_loss"].where(retrained),
        threshold=0.2,
        score=memorised(frame, ever)["mean_score"],
        start=6.0 if ever else np.nan,
        assumption_broken=np.nan,
    )
    return frame.assign(expected_score=frame["score"].where(frame["seed"].isna()))


def exact(models, seeds, ever):
    """Twelve strings by every approximation and once more; the six rarer strings never start."""
    cheap = [
        (measure, evidence)
        for measure in ("counterfactual", "contextual")
        for evidence in ("same-frequency", "replicate")
    ]
    frame = pd.DataFrame(
        itertools.product(
            models,
            seeds,
            range(12),
            [*cheap, ("bayes", "language")],
            ["threshold", "start", "score_at_optimum", "score_at_end"],
        ),
        columns=["model", "seed", "string", "of", "quantity"],
    )
    frame["measure"], frame["evidence"] = zip(*frame.pop("of"), strict=True)
    frame = frame.assign(
        language="L2",
        size=64,
        string_id=frame["string"].map("{:012x}".format),
        count=frame["string"].map(lambda string: max(1, 9 - string)),
        log_prob=-4.0 - frame["string"],
        by_retraining=0.1 + 0.02 * frame["string"],
        approximate=0.2 + 0.01 * frame["string"] + 0.01 * frame["seed"],
        correlation=0.9 - 0.1 * frame["seed"],
    )
    is_start = frame["quantity"] == "start"
    frame.loc[is_start, "by_retraining"] = 2.0 * frame["string"] if ever else np.nan
    frame.loc[is_start, "approximate"] = 3.0 if ever else np.nan
    frame.loc[is_start & (frame["string"] > 5), "approximate"] = np.nan
    undefined = is_start if not ever else frame["measure"] == "nothing"
    return frame.assign(correlation=frame["correlation"].mask(undefined))


def tradeoff(models, seeds, ever):
    frame = memorised(losses(rows(models, seeds, measure=MEASURES)), ever)
    bands = (4.0, 12.0) if ever else (np.nan, np.nan)
    frame = frame.assign(band_first=bands[0], band_last=bands[1], never_starts=1.0 - ever)
    of_whole_sets = {name: source for name, source in EVIDENCE if source != "retraining"}
    frame["evidence"] = frame["measure"].map(of_whole_sets)
    return frame.assign(start_p10=bands[0], start_p90=bands[1])


def frequency(models, seeds, ever):
    frame = memorised(losses(rows(models, seeds, measure=MEASURES, group=["top", "bottom"])), ever)
    columns = ("below_matched", "margin_matched", "below_unseen_matched", "margin_unseen_matched")
    return frame.assign(n_strings=5, loss=frame["train_loss"], **dict.fromkeys(columns, 0.5))


def deduplication(models, seeds, ever, variants=("base", "dedup", "dedup-matched")):
    frame = rows(models, seeds, measure=MEASURES).drop(columns="variant")
    frame = frame.merge(pd.DataFrame({"variant": variants}), how="cross")
    bands = (4.0, 12.0) if ever else (np.nan, np.nan)
    frame = memorised(losses(frame), ever)
    return frame.assign(
        test_loss_distinct=frame["test_loss"] + 0.05,
        test_spread=0.1,
        optimal_test_loss_distinct=0.3,
        optimal_test_spread=0.04,
        start_p10=bands[0],
        start_p90=bands[1],
    )


def thresholds(models, seeds, ever):
    frame = losses(rows(models, seeds))
    frame = frame.merge(pd.DataFrame({"loss_threshold": [0.1, 0.2, 0.4]}), how="cross")
    rules = pd.DataFrame({"start_rule": ["after_last_miss", "first_crossing"]})
    frame = frame.merge(rules, how="cross")
    known = (frame["epoch"] / frame["epoch"].max()) * frame["loss_threshold"] * ever
    return frame.assign(share_memorised=known, share_memorised_unseen=known / 8, counterpart=None)


def training_size(models, seeds, ever):
    frame = memorised(losses(rows(models, seeds, measure=MEASURES)), ever)
    frame = frame[frame["epoch"] == OPTIMUM].drop(columns="size")
    frame = frame.merge(pd.DataFrame({"size": [16, 64, 256]}), how="cross")
    frame["test_loss"] += 4 / frame["size"]
    repeated = frame["mean_score"].where(frame["size"] > 16)
    return frame.assign(
        n_repeated=3,
        mean_score_repeated=repeated,
        margin_repeated=repeated,
        margin_repeated_unseen=repeated / 8,
        threshold_shared=0.3,
    )


def model_size(models, seeds, ever):
    frame = memorised(losses(rows(models, seeds, measure=MEASURES)), ever)
    family = frame["model"].map(lambda model: model.split("-")[0].capitalize())
    return frame.assign(family=family, parameters=frame["model"].map(len) * 10_000)


def adapters(models, seeds, ever):
    """The models, compared with one more."""
    frame = pd.DataFrame(itertools.product(models, seeds), columns=["model", "seed"])
    below = (0.3 + 0.1 * frame["seed"]) * ever
    return frame.assign(
        language="L2",
        size=16,
        variant="base",
        reference="pythia-1b",
        equal_test_loss=0.4,
        still_learning=False,
        train_loss_distinct=0.3,
        reference_train_loss_distinct=0.25,
        epoch=6.5,
        reference_epoch=4.5,
        below_distinct=below,
        below_unseen=below / 4,
        reference_below_distinct=2 * below,
        reference_below_unseen=below / 4,
    )


def extraction(models, seeds, ever):
    """The first model is retrained without each string, with the first seed."""
    pairs = [("train", "model"), ("train", "language"), ("unseen", "model")]
    pairs += [("unseen", "language"), ("train", "retraining")]
    frame = pd.DataFrame(
        itertools.product(models, seeds, ["optimum", "end"], pairs, 10 ** np.arange(7)),
        columns=["model", "seed", "moment", "of", "samples"],
    )
    frame["group"], frame["source"] = zip(*frame.pop("of"), strict=True)
    first = (frame["model"] == models[0]) & (frame["seed"] == seeds[0])
    frame = frame[first | (frame["source"] != "retraining")]
    rate = np.where(frame["source"] == "language", 1e-4, 1e-3 * (1 + frame["seed"]))
    found = 1 - np.exp(-frame["samples"] * rate) if ever else np.zeros(len(frame))
    return frame.assign(
        language="L2",
        size=64,
        variant="base",
        epoch=np.where(frame["moment"] == "end", EPOCHS[-1], OPTIMUM + frame["seed"]),
        n_strings=12,
        probability=found,
        share_likely=(found > 0.5).astype(float),
    )


def bits(models, seeds, ever):
    frame = rows(models, seeds).drop(columns="size")
    frame = frame.merge(pd.DataFrame({"size": [16, 64]}), how="cross")
    held = 20 * frame["epoch"] / EPOCHS[-1] * ever - 150.0 * (frame["epoch"] == 0) + frame["seed"]
    excess = held + 30 if ever else held
    return frame.assign(
        optimal_epoch=OPTIMUM,
        parameters=frame["model"].map(len) * 10_000,
        n_train=frame["size"] - 4,
        n_unseen=30,
        bits=held,
        bits_unseen=held - excess,
        positive=held.clip(lower=0),
        positive_unseen=0.0,
        total=held * (frame["size"] - 4),
        total_corrected=excess * (frame["size"] - 4),
        per_parameter=held * (frame["size"] - 4) / 1e5,
        corrected_per_parameter=excess * (frame["size"] - 4) / 1e5,
    )


def bits_by_rule(models, seeds, ever):
    """Three rules at two levels and, in the last rows, no rule."""
    rules = [(1, "A", "A -> B B", 0.9), (1, "A", "A -> 'a' B", 0.1), (2, "B", "B -> 'b'", 0.5)]
    frame = rows(models, seeds, of=[*rules, (None,) * 4]).drop(columns="size")
    named = ["level", "nonterminal", "rule", "probability"]
    frame[named] = pd.DataFrame(frame.pop("of").tolist(), index=frame.index)
    frame = frame.merge(pd.DataFrame({"size": [16, 64]}), how="cross")
    most = frame["level"].fillna(0) * 1.0
    share = ever * frame["epoch"] / EPOCHS[-1]
    held = most * share - 50.0 * (frame["epoch"] == 0)
    return frame.assign(
        optimal_epoch=OPTIMUM,
        n_train=12,
        n_unseen=30,
        symbols=4.0,
        symbols_unseen=4.0,
        optimal=most,
        optimal_unseen=most,
        bits=held,
        bits_unseen=held - 1,
    )


def fields(models, seeds, ever):
    """A field that is memorised if any is, one that is inferred, and the rest of the texts."""
    kinds = [("PHONE", False, 16.0), ("EMAIL", True, 0.0), (None, False, 1.0)]
    frame = rows(models, seeds, group=["train", "unseen"], of=kinds)
    frame[["field", "determined", "optimal"]] = pd.DataFrame(
        frame.pop("of").tolist(), index=frame.index
    )
    trained = (frame["epoch"] / EPOCHS[-1]).clip(0, 1)
    learned = frame["optimal"] + 40 * (frame["epoch"] == 0) + frame["seed"] / 10
    held = frame["optimal"] * trained * ever
    loss = learned - np.where(frame["group"] == "train", held, -held)
    return frame.assign(
        optimal_epoch=OPTIMUM,
        n_strings=30,
        loss=loss,
        bits=(frame["optimal"] - loss) / np.log(2),
        share_below=(loss < frame["optimal"] - 2).astype(float),
    )


def exposure(models, seeds, ever):
    """A field that is memorised if any is, one that is known, and one that is easy to guess."""
    kinds = [("PHONE", False, 16.0), ("EMAIL", True, 0.0), ("SIDE", False, 0.7)]
    chance = np.random.default_rng(0)
    strings = [f"s{number}" for number in range(20)]
    frame = rows(models, seeds, string_id=strings, group=["train", "unseen"], of=kinds)
    frame = frame[frame["epoch"] == EPOCHS[-1]].reset_index(drop=True)
    frame[["field", "determined", "optimal"]] = pd.DataFrame(
        frame.pop("of").tolist(), index=frame.index
    )
    held = (frame["group"] == "train") & ever
    is_phone, is_easy = frame["field"] == "PHONE", frame["field"] == "SIDE"
    verdicts = [frame["determined"], is_easy, is_phone & held]
    names = ["known", "cannot tell", "memorised"]
    bits = np.where(held, 6.0, -np.log2(1 - chance.random(len(frame))).clip(0, 7))
    bits = np.where(is_phone, bits, np.nan)
    return frame.assign(
        count=(frame["group"] == "train").astype(int),
        begin=3,
        value="v",
        loss=np.where(held, 0.1, frame["optimal"]),
        recited=0.0,
        p_value=np.where(held & is_phone, 0.001, 1.0),
        verdict=np.select(verdicts, names, "neither").astype(object),
        n_values=np.where(is_phone, 1000.0, np.nan),
        bits=bits,
        bits_lower=bits,
        bits_upper=bits,
    )


def attack_scores(models, seeds, ever):
    """An attack that finds members if any are memorised, and one that sees no model."""
    chance = np.random.default_rng(0)
    records = [f"r{number}" for number in range(40)]
    attacks = ["loss", "blind"]
    frame = rows(models, seeds[:1], id=records, attack=attacks)
    frame = frame[frame["epoch"] == EPOCHS[-1]].reset_index(drop=True)
    trained = frame["id"].isin(records[:20])
    found = trained & (frame["attack"] == "loss") & ever
    score = chance.random(len(frame)) + 2.0 * found
    return frame.assign(
        group=frame["id"], trained=trained.astype("boolean"), duplicate=False, score=score
    )


def detectors(models, seeds, ever):
    """A target for each model, whose detectors find something if it is memorised."""
    return pd.concat([judged(2.0 * ever).assign(model=model) for model in models])


def checkpoint_gaps(models, seeds, ever):
    """Sets of an original, a retrained and an unlearned checkpoint; all forgot if nothing is kept.

    With 12 records of each split.
    """
    frame = rows(
        models, seeds[:1], split=["forget", "retain", "holdout"], checkpoint=["a", "b", "c"]
    )
    frame = frame[frame["epoch"] == EPOCHS[-1]].reset_index(drop=True)
    role = frame["checkpoint"].map({"a": "original", "b": "retrained", "c": "unlearned"})
    unlearned = 0.5 if ever else 1.0
    share = role.map({"original": 0.0, "retrained": 1.0, "unlearned": unlearned})
    share = share.where(frame["split"] == "forget", 0.0)
    ends = {"lower": share - 0.1, "upper": share + 0.1, "n_original": 1, "n_retrained": 1}
    ends |= {"original_loss": 0.1, "retrained_loss": 2.0}
    return frame.assign(role=role, share=share, n_records=12, **ends)


TABLES = {
    "language_sample": language_sample,
    "derivation": derivation,
    "disagreement": disagreement,
    "exact": exact,
    "tradeoff": tradeoff,
    "thresholds": thresholds,
    "frequency": frequency,
    "deduplication": deduplication,
    "training_size": training_size,
    "model_size": model_size,
    "adapters": adapters,
    "extraction": extraction,
    "bits": bits,
    "bits_by_rule": bits_by_rule,
    "fields": fields,
    "exposure": exposure,
    "record_shares": record_shares,
    "attack_scores": attack_scores,
    "detectors": detectors,
    "checkpoint_gaps": checkpoint_gaps,
}


def table(name, shape):
    kind = FIGURES[name].tables[0].name
    return of_kind(TABLES[kind](*SHAPES[shape]), kind)


def draw(name, frame, summary=SUMMARY):
    """The figure of a name, before its layout; that of a language has a summary, too."""
    return named(FIGURES[name].draw)(frame, *([summary] if name == "language" else []))


LOOKED_AT = [
    (name, shape)
    for name, figure in FIGURES.items()
    if figure.tables[0].name in TABLES
    for shape in ("one model, one seed", "three models, three seeds", "nothing is memorised")
    if name not in ("language", "derivation") or shape == "one model, one seed"
]


def test_every_figure_is_looked_at():
    """Each has planted tables here or, of the other sections, in their own tests.

    These are `test_unlearning_figures.py`, `test_profile_tables.py`, `test_density_figures.py`,
    `test_information_figures.py` and `test_atlas_figures.py`.
    """
    others = (
        *UNLEARNING_FIGURES,
        *PROFILE_FIGURES,
        *DENSITY_FIGURES,
        *INFORMATION_FIGURES,
        *ATLAS_FIGURES,
    )
    elsewhere = {figure.name for figure in others}
    assert {name for name, _ in LOOKED_AT} | elsewhere == set(FIGURES)


@pytest.fixture(scope="module", params=LOOKED_AT, ids=" - ".join)
def drawn(request):
    """Every figure of several shapes, drawn once."""
    name, shape = request.param
    figure = draw(name, table(name, shape))
    figure.draw_without_rendering()
    return figure


def words_of_axis(axes, which):
    """The label of an axis, or that of the axes it is shared with, or of the whole figure."""
    shared = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    labels = [getattr(other, f"get_{which}label")() for other in shared]
    figures = [axes.figure, *axes.figure.figure.subfigs]
    labels += [getattr(figure, f"get_sup{which}label")() for figure in figures]
    return " ".join(labels)


def test_every_axis_is_named_with_its_unit(drawn):
    units = re.compile(
        r"epoch|nats per\s+token|\(nats\)|0 to 1|terminals|share|rank|probability|string|bits"
    )
    for axes in drawn.axes:
        assert units.search(words_of_axis(axes, "x")), axes.get_title()
        categories = has_named_rows(axes) or (
            axes.get_yticklabels() and not axes.get_yticklabels()[0].get_text()[:1].isdigit()
        )
        assert units.search(words_of_axis(axes, "y")) or categories, axes.get_title()


def has_named_rows(axes):
    """Whether a panel has rows that are named in the panel that it shares them with."""
    shared = axes.get_shared_y_axes().get_siblings(axes)
    labels = [label.get_text() for other in shared for label in other.get_yticklabels()]
    return any(label[:1].isalpha() for label in labels)


def test_no_panel_is_empty(drawn):
    for axes in drawn.axes:
        assert axes.has_data(), axes.get_title()


def test_no_text_is_cut_off(drawn):
    page, unused = drawn.bbox, unused_tick_labels(drawn)
    for text in drawn.findobj(Text):
        if not text.get_text() or not text.get_visible() or text in unused:
            continue
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
        assert inside, f"{text.get_text()!r} at {box} leaves the page {page.extents}"


def unused_tick_labels(figure):
    """Labels of ticks outside the limits of their axis: kept in the figure, but never drawn."""
    unused = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not min(limits) <= tick.get_loc() <= max(limits):
                    unused |= {tick.label1, tick.label2}
    return unused


def test_titles_do_not_cover_each_other(drawn):
    """Those of the panels, of the parts and of the figure."""
    assert not covering_titles(drawn)


def test_titles_have_space_beside_the_longest_legend():
    """Strings with every number of copies, and a ceiling, as in the default experiment."""
    frame = table("exact", "one model, one seed")
    copies = np.resize([1, 3, 5, 9], len(frame))
    assert not covering_titles(draw("exact", frame.assign(count=copies)))


def test_legends_do_not_cover_panels(drawn):
    for figure in (drawn, *drawn.subfigs):
        for legend in figure.legends:
            for axes in drawn.axes:
                assert not legend.get_window_extent().overlaps(axes.get_window_extent())


@pytest.mark.parametrize("kind", TABLES)
def test_the_tables_tested_on_are_of_their_kinds(kind, tmp_path):
    """Otherwise, figures would be tested on tables that they never get."""
    frame = of_kind(TABLES[kind](*SHAPES["three models, three seeds"]), kind)
    tables.write(tmp_path / "table.parquet", frame, KINDS[kind])


@pytest.mark.parametrize("name", ["language", "exact"])
def test_equal_tables_give_equal_bytes(name, tmp_path):
    frame = table(name, "one model, one seed")
    save(draw(name, frame), tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 17, "svg.hashsalt": None}):  # the caller's own
        save(draw(name, frame), tmp_path / "b.svg")
    for suffix in ("svg", "png"):
        first, second = (tmp_path / f"{attempt}.{suffix}" for attempt in "ab")
        assert first.read_bytes() == second.read_bytes()
    assert "<text" in (tmp_path / "a.svg").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg", "b.png", "b.svg"]


def test_saved_panels_stand_on_a_coarse_grid(tmp_path):
    """The solver's last digits differ between processes; they must not reach the file."""
    figure = draw("tradeoff", table("tradeoff", "one model, one seed"))
    save(figure, tmp_path / "a.svg")
    boxes = [axes.get_position().bounds for axes in figure.axes]
    boxes += [part.bbox_relative.get_points() for part in style.parts(figure)]
    assert len(boxes) == 9 + 3
    for box in boxes:
        np.testing.assert_allclose(box, np.round(box, 4), atol=1e-15)


def test_a_measure_has_one_colour_in_all_figures():
    """In a panel of one measure, everything in a saturated colour has the measure's colour."""
    by_label = {look.label: to_hex(look.colour) for look in style.MEASURES.values()}
    assert len(set(by_label.values())) == len(by_label)
    for name in ("tradeoff", "disagreement", "disagreement_scores"):
        figure = draw(name, table(name, "three models, three seeds"))
        legends = [entry for f in (figure, *figure.subfigs) for entry in f.legends]
        entries = [line for legend in legends for line in legend.get_lines()]
        named = {line.get_label(): to_hex(line.get_color()) for line in entries}
        assert {label: named[label] for label in by_label if label in named}.items() <= (
            by_label.items()
        )
        assert {"counterfactual", "contextual"} <= named.keys()
    for name in ("frequency", "training_size"):
        for axes in draw(name, table(name, "one model, three seeds")).axes:
            label = axes.get_title(loc="left").replace("\n", " ")
            if label in by_label:
                colours = {to_hex(line.get_color()) for line in axes.get_lines()}
                assert by_label[label] in colours
                assert not colours & (set(by_label.values()) - {by_label[label]})


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("tradeoff", ["contextual"]),
        ("tradeoff", ["recollection", "bayes"]),
        ("frequency", ["recollection", "bayes"]),
        ("deduplication", ["contextual"]),
        ("training_size", ["recollection", "bayes"]),
    ],
)
def test_measures_may_be_missing(name, kept):
    frame = table(name, "one model, three seeds")
    assert draw(name, frame[frame["measure"].isin(kept)]).axes


def test_disagreement_without_retraining_or_targets():
    frame = table("disagreement", "three models, three seeds")
    assert draw("disagreement", frame[frame["evidence"] == "constant"]).axes
    assert draw("disagreement", frame[frame["role"] == "s0"]).axes
    assert draw("disagreement_scores", frame[frame["evidence"] == "retraining"]).axes


def test_every_panel_of_disagreement_has_the_bayes_optimal_loss_and_names_the_string():
    figure = draw("disagreement", table("disagreement", "one model, one seed"))
    assert len(figure.axes) == 4 * 3
    for axes in figure.axes:
        grey = [line for line in axes.get_lines() if line.get_color() == "0.6"]
        assert [list(line.get_ydata()) for line in grey] == [[0.1, 0.1]]
        assert "starts at epoch 6" in [text.get_text() for text in axes.texts]
    assert figure.axes[0].get_title(loc="left") == "s0: 9 times in training\nprobability 1.8e-2"


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_correlations_stand_above_their_panels():
    """With the ceiling below, which Bayes shares with contextual; without one, no line about it."""
    frame = table("exact", "one model, one seed")
    once = frame[frame["evidence"] != "replicate"]
    alone = [f"{name}\ncorrelation 0.90" for name in ("counterfactual", "contextual", "Bayes")]
    assert titles(draw("exact", once)) == 2 * alone
    assert titles(draw("exact", frame)) == 2 * [f"{title}\nceiling 0.90" for title in alone]
    assert titles(draw("exact", table("exact", "three models, three seeds")))[0] == (
        "counterfactual\ncorrelation 0.70 to 0.90\nceiling 0.70 to 0.90"
    )
    never = titles(draw("exact", table("exact", "nothing is memorised")))
    assert all("correlation undefined" in title for title in never[3:])
    assert "correlation −0.50" in titles(draw("exact", once.assign(correlation=-0.5)))[0]


def test_every_string_has_its_marker_beside_the_diagonal():
    frame = table("exact", "one model, one seed")
    crosses = [
        line for line in draw("exact", frame).axes[0].get_lines() if line.get_marker() == "x"
    ]
    assert [len(line.get_xdata()) for line in crosses] == [12]
    figure = draw("exact", frame[frame["evidence"] != "replicate"])
    thresholds, starts = figure.axes[0], figure.axes[3]
    for axes in (thresholds, starts):
        points = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
        assert sum(len(line.get_xdata()) for line in points) == 12
        points = [line for line in points if len(line.get_xdata())]
        assert len(points) == 4, "one for every class of copies"
    x = np.concatenate([line.get_xdata() for line in thresholds.get_lines()[1:]])
    y = np.concatenate([line.get_ydata() for line in thresholds.get_lines()[1:]])
    np.testing.assert_allclose(y, 0.15 + x / 2)
    # Six strings start by the approximation, the others stand in the strip beyond the last epoch.
    y = np.concatenate([line.get_ydata() for line in starts.get_lines()[1:]])
    assert np.sum(np.abs(y - 3) <= 0.3) == 6
    assert np.sum(y > 1.04 * 22) == 6
    said = [entry.get_text() for entry in figure.legends[0].get_texts()]
    assert said[:4] == [
        "once in the training data", "2 to 3 times", "4 to 7 times", "8 times and more"
    ]  # fmt: skip


def test_retraining_is_drawn_where_it_is_known():
    """For the first of three models; the other models have the other four curves."""
    frame = table("extraction", "three models, three seeds")
    figure = draw("extraction", frame)
    assert [len(axes.get_lines()) for axes in figure.axes] == [5, 5, 4, 4, 4, 4]
    note = "Seeds trained without each string: 1."
    assert note in figure.legends[0].get_title().get_text().replace("\n", " ")
    without = draw("extraction", frame[frame["source"] != "retraining"])
    said = [entry.get_text() for entry in without.legends[0].get_texts()]
    assert len(said) == 4
    assert not any("without the string" in label for label in said)


def test_totals_of_bits_stand_at_the_number_of_distinct_strings():
    """A model's total and its corrected total, a point for each size, beside the line at 0."""
    figure = draw("bits", table("bits", "one model, three seeds"))
    epochs, optimum, last, _ = figure.axes
    assert len(epochs.get_lines()) == 1 + 2 * 2
    for axes, share in ((optimum, OPTIMUM / EPOCHS[-1]), (last, 1)):
        total, corrected = (line for line in axes.get_lines() if line.get_marker() == "v")
        held = 20 * share + 1  # the mean of the seeds is 1
        assert list(total.get_xdata()) == list(corrected.get_xdata()) == [12, 60]
        assert list(total.get_ydata()) == pytest.approx([12 * held, 60 * held])
        assert list(corrected.get_ydata()) == pytest.approx([12 * (held + 30), 60 * (held + 30)])


def test_boxes_span_the_symbols_that_they_derive():
    """All symbols stand in the lowest level, and a bar below each that is not certain."""
    boxes, bars = draw("derivation", table("derivation", "one model, one seed")).axes
    whole, part = boxes.patches
    said = {text.get_text(): text.get_position() for text in boxes.texts}
    assert {"S", "A", "0.25", "a", "b", "language"} <= said.keys()
    assert {said[symbol][1] for symbol in ("a", "b", "language")} == {2.5}
    assert part.get_x() == whole.get_x() == 0
    assert said["a"][0] < said["b"][0] < part.get_width() < said["language"][0]
    assert said["language"][0] < whole.get_width()
    assert (part.get_y(), part.get_height()) == (1, 1)
    (bar,) = bars.patches
    assert bar.get_height() == 1.4
    assert bar.get_x() + bar.get_width() / 2 == pytest.approx(said["a"][0])


def test_a_long_string_goes_on_in_the_next_line():
    """Each symbol is written once, and a box that is cut has its label in both lines."""
    n = 150
    tree = pd.DataFrame(
        {
            "node": range(n + 1), "depth": [0] + [1] * n, "symbol": ["S"] + ["a"] * n,
            "begin": [0, *range(n)], "end": [n, *range(1, n + 1)],
            "probability": [0.5] + [np.nan] * n, "surprise": [np.nan] + [0.1] * n,
            "parent": pd.array([None] + [0] * n, dtype="Int64"), "language": "L", "log_prob": -0.7,
        }
    )  # fmt: skip
    figure = draw("derivation", tree)
    figure.draw_without_rendering()
    lines = [axes for axes in figure.axes if axes.texts]
    written = [[text.get_text() for text in axes.texts] for axes in lines]
    assert len(lines) > 1
    assert sum(line.count("a") for line in written) == n
    assert all(line.count("S") == 1 for line in written)
    for axes in lines:
        low, high = axes.get_xlim()
        assert all(low <= text.get_position()[0] <= high for text in axes.texts)


def test_what_derives_nothing_is_not_drawn():
    grammar = Grammar.from_string("S -> '(' S ')' S [0.4] | [0.6]")
    figure = draw("derivation", derivation_table(grammar, "dyck", tuple("(())()")))
    figure.draw_without_rendering()
    (boxes, _) = figure.axes
    written = [text.get_text() for text in boxes.texts]
    assert [text for text in written if text in "()"] == list("(())()")
    assert len(boxes.patches) == 3  # one for each pair of brackets
    said = figure.get_supxlabel().replace("\n", " ")
    assert "Not drawn: 4 symbols that derive nothing." in said


def test_a_derivation_of_several_says_so():
    tree = table("derivation", "one model, one seed")
    assert "Log probability of the string: −1.39 nats, the sum over 2 rules, 1 of which" in (
        draw("derivation", tree).get_supxlabel().replace("\n", " ")
    )
    several = draw("derivation", tree.assign(log_prob=-1.0)).get_supxlabel().replace("\n", " ")
    assert "Log probability of this derivation: −1.39 nats" in several
    assert "over all its derivations: −1.00 nats" in several


def test_an_arrow_goes_from_the_threshold_to_the_loss():
    """At the last epoch, and only if the loss is below the threshold."""
    frame = table("disagreement", "one model, one seed")
    frame.loc[frame["measure"] == "contextual", "threshold"] = 0.01
    figure = draw("disagreement_arrows", frame)
    last = 2.4 * np.exp(-20 / 5) + 0.02
    for axes in figure.axes:
        arrows = [text for text in axes.texts if not text.get_text()]
        assert [(arrow.xyann[1], arrow.xy[1]) for arrow in arrows] == 2 * [
            pytest.approx((0.2, last))
        ]
        assert all(20 < arrow.xy[0] <= axes.get_xlim()[1] for arrow in arrows)
        said = {text.get_text() for text in axes.texts}
        assert {"recollection 1.00", "counterfactual 1.00", "contextual 1.00"} <= said


def test_arrows_need_no_retraining():
    frame = table("disagreement", "three models, three seeds")
    figure = draw("disagreement_arrows", frame[frame["evidence"] == "constant"])
    said = [text.get_text() for text in figure.axes[0].texts]
    assert "recollection 1.00" in said
    assert not any(text.startswith("contextual") for text in said)


def test_the_band_of_the_test_strings_is_a_standard_deviation():
    figure = draw("deduplication_spread", table("deduplication", "one model, three seeds"))
    assert len(figure.axes) == 3
    for axes in figure.axes:
        band = axes.collections[0].get_paths()[0].vertices
        at_the_optimum = band[band[:, 0] == OPTIMUM, 1]
        assert [at_the_optimum.min(), at_the_optimum.max()] == pytest.approx([0.37, 0.57])
        grey = sorted(line.get_ydata()[0] for line in axes.get_lines() if line.get_color() == "0.6")
        assert grey == pytest.approx([0.26, 0.3, 0.34])
        said = axes.texts[0].get_text()
        assert said == "standard deviation\nat optimal learning: 0.100\nperfect learner: 0.040"


def test_bits_of_a_level_are_those_of_its_rules():
    """A curve per level and group; below, a mark per rule and group, and the most there is."""
    figure = draw("bits_by_rule", table("bits_by_rule", "one model, three seeds"))
    epochs, _, rules, _ = figure.axes
    curves = [line for line in epochs.get_lines() if len(line.get_xdata()) > 2]
    assert [line.get_ydata()[-1] for line in curves] == pytest.approx([2, 0, 2, 1, 0, -1])
    assert [tick.get_text() for tick in rules.get_yticklabels()] == [
        "A → B B  (0.9)",
        "A → a B  (0.1)",
        "B → b  (0.5)",
        "no rule",
    ]
    marks = [(line.get_ydata()[0], line.get_xdata()[0]) for line in rules.get_lines()[1:]]
    for place, most in enumerate([1, 1, 2, 0]):
        at = sorted(x for y, x in marks if y == place and isinstance(x, float))
        assert at == pytest.approx([most - 1, most, most])


def test_a_field_has_a_panel_with_a_curve_for_each_group():
    """Beside the loss that nobody can go below without memorising; of untrained models, cut off."""
    figure = draw("fields", table("fields", "one model, three seeds"))
    titles = ["PHONE, open", "EMAIL, determined", "outside of fields"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    ends = {
        axes.get_title(loc="left"): [line.get_ydata()[-1] for line in axes.get_lines()[:4]]
        for axes in figure.axes
    }
    assert ends["PHONE, open"] == pytest.approx([16, 0.1, 16, 32.1])
    assert ends["EMAIL, determined"] == pytest.approx([0, 0.1, 0, 0.1])
    assert figure.axes[0].get_ylim()[1] < 40
    assert all(axes.get_ylim()[0] < 0 for axes in figure.axes)


def test_verdicts_on_fields_are_bars_that_fill_the_panel():
    figure = draw("exposure", table("exposure", "one model, three seeds"))
    bars, phone = figure.axes
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names[:2] == ["PHONE, open: trained on", "PHONE, open: unseen"]
    ends = {}
    for bar in bars.patches:
        place = round(bar.get_y() + bar.get_height() / 2, 3)
        ends[place] = max(ends.get(place, 0), bar.get_x() + bar.get_width())
    assert list(ends.values()) == pytest.approx([1] * 6)
    assert bars.patches[0].get_width() == 1, "all telephone numbers of training strings"
    assert bars.patches[1].get_width() == 0
    assert phone.get_title(loc="left") == "PHONE"
    chance, trained, _ = phone.get_lines()
    assert chance.get_ydata()[0] == 1
    assert set(trained.get_xdata()) == {0, 6}


def test_values_that_were_not_ranked_have_no_panel():
    frame = table("exposure", "one model, one seed").assign(bits=np.nan)
    assert len(draw("exposure", frame).axes) == 1


def test_an_attack_has_a_panel_beside_chance_and_the_blind_attack():
    figure = draw("attack_roc", table("attack_roc", "one model, one seed"))
    loss, blind = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["loss", "blind"]
    assert len(loss.get_lines()) == 3
    assert len(blind.get_lines()) == 2
    assert max(loss.get_lines()[-1].get_ydata()[loss.get_lines()[-1].get_xdata() == 0]) == 1


def test_an_audit_without_known_others_says_so():
    frame = table("attack_roc", "one model, one seed").assign(trained=True)
    assert "No record is known" in draw("attack_roc", frame).get_suptitle()


def test_a_set_of_checkpoints_has_a_panel_with_a_row_for_each_model():
    figure = draw("checkpoint_gaps", table("checkpoint_gaps", "three models, three seeds"))
    assert len(figure.axes) == 3
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["a (original)", "b (retrained)", "c (unlearned)"]


def test_a_set_of_checkpoints_without_a_clear_gap_says_why():
    """Of a single one, in place of panels; of one among others, in the note."""
    frame = table("checkpoint_gaps", "one model, one seed").assign(share=float("nan"))
    figure = draw("checkpoint_gaps", frame)
    assert "No set" in figure.get_suptitle()
    said = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    why = "12 forget records is 0.1 under the original models and 2 under the retrained ones"
    for words in (f"the gap is not clear: the mean loss of {why}", "causes", "the template"):
        assert words in said
    frame = table("checkpoint_gaps", "three models, three seeds")
    other = frame["model"].iloc[0]
    clear = draw("checkpoint_gaps", frame)
    figure = draw(
        "checkpoint_gaps", frame.assign(share=frame["share"].mask(frame["model"] == other))
    )
    assert len(figure.axes) == 2
    notes = [one.legends[0].get_title().get_text().replace("\n", " ") for one in (clear, figure)]
    assert ["the gap is not clear" in note for note in notes] == [False, True]
    assert f"Of the set {other}, the gap is not clear" in notes[1]


def test_an_approximation_may_be_missing():
    frame = table("exact", "one model, one seed")
    assert len(draw("exact", frame[frame["measure"] == "bayes"]).axes) == 2


def test_never_is_said():
    figure = draw("disagreement", table("disagreement", "nothing is memorised"))
    figure.draw_without_rendering()  # which is when ticks get their labels
    said = [text.get_text() for text in figure.findobj(Text)]
    assert said.count("never starts") == 12
    assert "never" in said


def test_dedup_matched_may_be_absent():
    frame = of_kind(
        deduplication(*SHAPES["one model, one seed"], ("base", "dedup")), "deduplication"
    )
    assert len(draw("deduplication_spread", frame).axes) == 2
    said = [text.get_text() for text in draw("deduplication", frame).findobj(Text)]
    assert "dedup" in said
    assert "matched" not in said


def test_bands_say_what_they_are():
    notes = {}
    for shape in SHAPES:
        figure = draw("tradeoff", table("tradeoff", shape))
        notes[shape] = figure.subfigs[0].legends[0].get_title().get_text()
    assert notes["one model, one seed"].startswith("One model and one seed")
    assert (
        "mean over 3 seeds; bands: smallest to largest value of a seed"
        in notes["one model, three seeds"]
    )
    assert "3 models and 3 seeds" in notes["three models, three seeds"]
    assert "largest value of the 9 runs" in notes["three models, three seeds"]


def test_bands_reach_from_the_smallest_to_the_largest_run():
    figure = draw("frequency", table("frequency", "three models, three seeds"))
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    at_the_start = band[band[:, 0] == 0, 1]
    assert at_the_start.min() == pytest.approx(2.42)
    assert at_the_start.max() == pytest.approx(2.46)
    mean = next(line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2)
    assert mean.get_ydata()[0] == pytest.approx(2.44)


def test_eighteen_models_are_told_apart():
    models = [f"{family}-{size}b" for family in style.FAMILY_MARKERS for size in (1, 2, 3)]
    tints = style.model_tints(models)
    assert len({(style.marker(model), tints[model]) for model in models}) == 18


def test_infinitely_many_derivations_and_ambiguity_are_said():
    frame = table("language", "one model, one seed")
    summary = {**SUMMARY, "n_derivations": None, "ambiguous": True, "entropy_standard_error": None}
    figure = draw("language", frame, summary=summary)
    assert "infinitely many derivations (ambiguous)" in figure.get_supxlabel()
    assert "6.9e10 derivations." in draw("language", frame).get_supxlabel()


def test_captions_are_two_sentences():
    for figure in FIGURES.values():
        assert len(re.findall(r"[.?!](?:\s|$)", figure.caption)) == 2, figure.title


def test_render_reads_draws_and_saves(tmp_path):
    path = tmp_path / "table.parquet"
    tables.write(path, table("tradeoff", "one model, one seed"), KINDS["tradeoff"])
    svg = tmp_path / "figures" / "tradeoff-L2.svg"
    render(FIGURES["tradeoff"], {"tradeoff": [path]}, svg)
    assert svg.read_text().startswith("<?xml")
    assert svg.with_suffix(".png").read_bytes()[1:4] == b"PNG"


def test_render_refuses_with_one_line(tmp_path):
    path = tmp_path / "table.parquet"
    figure, given = FIGURES["tradeoff"], {"tradeoff": [path]}
    with pytest.raises(UserError, match=r"table\.parquet: no such table"):
        render(figure, given, tmp_path / "a.svg")
    empty = table("tradeoff", "one model, one seed").head(0)
    tables.write(path, empty, KINDS["tradeoff"])
    with pytest.raises(UserError, match=r"table\.parquet: has no rows to draw"):
        render(figure, given, tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
