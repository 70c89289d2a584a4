"""A report of invented tables, and a reader of its pages."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd

from palimpsest import report
from palimpsest.report.part import EMPTY, part_of
from palimpsest.sections import NAMES, SECTIONS

VOID = {"meta", "br", "hr", "img", "link", "input"}
TOTALS = {
    "n_runs": 12,
    "models": ["pythia-1b-twin", "<b>bold"],
    "languages": ["L1", "L2"],
    "sizes": [64],
    "seeds": [0, 1, 2],
    "epochs": 50,
    "wall_time_seconds": 3725.0,
    "packages": {"torch": "2.13.0"},
    "hardware": {"cores": 2, "gpus": []},
    "revisions": ["abc"],
    "a_new_key": "a new value",
}

MODELS = [
    {
        "model": f"<i>{scale}",
        "scale": scale,
        "parameters": 1000,
        "engine": "deepspeed",
        "precision": "float32",
        "adapter_rank": None,
        "source": "a/<i>b",
        "revision": "main",
    }
    for scale in ("twin", "full")
]


def claim(question="RQ1", verdict="agrees", language="L1", **columns):
    row = {
        "question": question,
        "claim": "A claim of strings < others.",
        "statistic": "share & excess",
        "agrees_if": ">= -0.1",
        "evidence": "same-frequency",
        "coverage": np.nan,
        "language": language,
        "models": "m",
        "n_models": 1,
        "n_seeds": 3,
        "estimate": -0.25,
        "n_models_hold": 1,
        "n_families": 1,
        "n_families_hold": 0,
        "lower": -0.5,
        "upper": 0.125,
        "p_value": 0.01,
        "p_holm": 0.03,
        "verdict": verdict,
        "verdict_models": "",
        "power": 1.0,
        "note": "",
        "seeds_needed": np.nan,
        "interval_over": "seeds",
        "by_construction": False,
    }
    return {**row, **columns}


CLAIMS = pd.DataFrame(
    [
        claim(),
        claim(language="L2", verdict="disagrees"),
        claim(
            "RQ3",
            claim="Another claim.",
            verdict="cannot tell",
            p_holm=1.0,
            note="about 7 seeds would decide; 1 of 18 runs late",
            coverage=0.75,
            seeds_needed=7,
        ),
        claim("bayes", claim="A third claim.", verdict="agrees"),
        claim("RQ2", claim="A lemma.", verdict="agrees", by_construction=True, p_holm=np.nan),
        claim(
            "RQ9",
            claim="Not run.",
            language="",
            models="",
            n_models=0,
            n_models_hold=np.nan,
            n_families=np.nan,
            n_families_hold=np.nan,
            n_seeds=0,
            estimate=np.nan,
            lower=np.nan,
            upper=np.nan,
            p_value=np.nan,
            p_holm=np.nan,
            verdict="cannot tell",
            note="the statistic is undefined here, or what it needs was not run",
        ),
    ]
)
AGREEMENT = pd.DataFrame(
    [
        {
            "model": "m",
            "language": "L2",
            "size": 64,
            "seed": seed,
            "role": role,
            "string_id": "a",
            "measure": measure,
            "evidence": "language" if measure == "bayes" else "same-frequency",
            "threshold_error": -0.1 * (seed + 1),
            "start_error": np.nan if role == "s1" else 2.0,
            "score_error": 0.05,
            "same_verdict": 0.9,
        }
        for seed in (0, 1, 2)
        for role in ("s0", "s1")
        for measure in ("contextual", "bayes")
    ]
)


# Two models and three seeds; the epoch of optimal learning is 4.
TRADEOFF = pd.DataFrame(
    [
        {
            "model": model,
            "language": "L2",
            "seed": seed,
            "measure": measure,
            "epoch": epoch,
            "optimal_epoch": 4,
            "share_memorised_unseen": np.nan
            if measure == "contextual"
            else 0.1 * (seed + i) * (epoch == 4),
            "below_unseen": np.nan if measure == "contextual" else 0.5,
            "below_distinct": 0.625,
            "share_memorised_distinct": 0.75,
            "share_memorised_perfect": 0.0,
            "coverage": 0.875,
        }
        for i, model in enumerate(("m", "n"))
        for seed in (0, 1, 2)
        for measure in ("contextual", "bayes")
        for epoch in (2, 4)
    ]
)


# Two seeds: the values of the second are 0.1 higher. No string is single in the training data.
APPROXIMATION = pd.DataFrame(
    [
        {
            "model": "m",
            "language": "L2",
            "size": 64,
            "seed": seed,
            "group": group,
            "measure": "contextual",
            "evidence": "same-frequency",
            "quantity": quantity,
            "statistic": statistic,
            "n_strings": 7 if statistic == "mean_error" else 12,
            "value": np.nan if (group, statistic) == ("repeated", "correlation") else value,
            "lower": value - 0.25,
            "upper": value + 0.25,
        }
        for seed in (0, 1)
        for group in ("all", "repeated")
        for quantity in ("threshold", "start")
        for statistic, value in (
            ("correlation", 0.5 + 0.1 * seed),
            ("mean_error", -2.0),
            ("mean_absolute_error", 3.0),
        )
    ]
)


def answer(model="m", language="L2", **columns):
    row = {
        "question": "What share is memorised?",
        "model": model,
        "language": language,
        "size": 64,
        "measure": "contextual",
        "evidence": "retraining",
        "trained": 0.61,
        "unseen": 0.38,
        "difference": 0.23,
        "lower": 0.13,
        "upper": 0.34,
        "interval_over": "seeds",
        "n_seeds": 3,
    }
    return {**row, **columns}


UNKNOWN = {"lower": np.nan, "upper": np.nan, "interval_over": ""}
HEADLINE = pd.DataFrame(
    [
        answer(),
        answer(measure="bayes", evidence="language", trained=0.777),
        answer("n", trained=0.5, unseen=0.25, difference=0.25, n_seeds=1, **UNKNOWN),
        answer(
            "<b>mine",
            "records",
            question="What share of <records>?",
            measure="recollection",
            evidence="constant",
            trained=0.125,
            unseen=np.nan,
            difference=np.nan,
            n_seeds=0,
            **UNKNOWN,
        ),
    ]
)


class Page(HTMLParser):
    """The page's tags, checked for balance while they are read."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.attributes = [], [], [], [], []
        self.words = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        self.words.append(data)

    def note(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "xlink:href", "src")]

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


class Words(Page):
    """The words and numbers that are read, without the links to other pages."""

    HIDDEN = frozenset({"nav", "style", "script", "head", "svg"})

    def handle_data(self, data):
        if not set(self.open) & self.HIDDEN:
            self.words += data.split()


class Sentences(Words):
    """What is to be read from beginning to end: no file, command, choice or cell of a table."""

    HIDDEN = Words.HIDDEN | {"code", "option", "td"}

    def handle_data(self, data):
        if not set(self.open) & self.HIDDEN:
            self.words += re.findall(r"[^\W\d_]{2,}\S*", data)


# Of the whole report, in sentences: with every section of invented tables, and of the tour
MOST_OF_ALL, MOST_OF_A_TOUR = 7_000, 3_000
MOST_WORDS = {"index": 400, **dict.fromkeys(NAMES, 900)}  # before what is folded


class Unfolded(Page):
    """The words that are seen before anything is unfolded, without the links to other pages."""

    HIDDEN = ("details", "nav", "style", "script", "head")

    def handle_data(self, data):
        if not set(self.open) & {*self.HIDDEN}:
            self.words.append(data)


# Of the three runs of model n, one may still be learning.
LEARNING = pd.DataFrame(
    [
        {
            "model": model,
            "language": "L2",
            "size": 64,
            "variant": "base",
            "seed": seed,
            "epoch": epoch,
            "still_learning": (model, seed) == ("n", 2),
        }
        for model in ("m", "n")
        for seed in (0, 1, 2)
        for epoch in (2, 4)
    ]
)
GIVEN = {
    "agreement": AGREEMENT,
    "tradeoff": TRADEOFF,
    "approximation": APPROXIMATION,
    "learning": LEARNING,
}


def parts(facts=EMPTY, **given):
    """The parts of all sections, with some tables of memorisation instead of those above."""
    given = {**GIVEN, **given}
    return [part_of(section, given, facts) for section in SECTIONS]


def rendered(
    path,
    entries=(),
    claims=CLAIMS,
    title="",
    facts=EMPTY,
    folder=None,
    headline=HEADLINE,
    is_short=False,
    **given,
):
    """The text of a report; `given` are tables of memorisation by their kind."""
    report.render(
        path,
        parts=parts(facts, **given),
        figures=list(entries),
        headline=headline,
        claims=claims,
        totals=TOTALS,
        models=MODELS,
        title=title,
        folder=folder,
        is_short=is_short,
    )
    return path.read_text(encoding="utf-8")
