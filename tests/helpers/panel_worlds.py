"""Panels of models of several sizes, with known effects, as users bring them."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from palimpsest.profiles.kinds import LOG_LIKELIHOOD
from palimpsest.profiles.panel import to_panel
from palimpsest.profiles.panels_study import STUDY_KINDS, effect_rows, tables_of
from palimpsest.profiles.profile import of_panel

TIMES, COHORTS = 12, 8
PER_COHORT, UNTREATED = 24, 120
SHAPE = {cohort: 1 + 0.1 * np.sin(2.0 * cohort) for cohort in range(1, COHORTS + 1)}

Effect = Callable[[int, int], float]  # of a cohort, and of the time since its treatment


def falling(strength: float, floor: float) -> Effect:
    """An effect that falls at once from `strength` to about its share `floor`.

    Just after the treatment, it is larger for early cohorts; later, for late ones.
    """

    def effect(cohort: int, since: int) -> float:
        share = 1.3 - 0.1 * cohort if since == 0 else floor * (0.3 + 0.15 * cohort)
        return strength * SHAPE[cohort] * share

    return effect


def panel_frame(effect: Effect, seed: int = 0, noise: float = 0.05, model: int = 0) -> pd.DataFrame:
    """A panel as a table. Panels with one seed measure the same strings, by several models."""
    strings, chance = np.random.default_rng(seed), np.random.default_rng([seed, 1, model])
    cohorts = [*np.repeat(np.arange(1.0, COHORTS + 1), PER_COHORT), *[np.nan] * UNTREATED]
    level = strings.normal(size=(len(cohorts), 1))
    common = 0.1 * np.cumsum(strings.normal(size=(len(cohorts), TIMES)), axis=1)
    outcome = -30 + np.arange(TIMES) + level + common
    outcome = outcome + noise * chance.normal(size=outcome.shape)
    for place, cohort in enumerate(cohorts):
        for time in range(TIMES) if np.isfinite(cohort) else ():
            if time >= cohort:
                outcome[place, time] += effect(int(cohort), int(time - cohort))
    return pd.DataFrame(
        {
            "unit": np.repeat([f"s{place}" for place in range(len(cohorts))], TIMES),
            "time": np.tile(np.arange(TIMES), len(cohorts)),
            "cohort": np.repeat(cohorts, TIMES),
            "outcome": outcome.ravel(),
        }
    )


def study_of(effects: dict[str, Effect], seeds: dict[str, int] | None = None, noise: float = 0.05):
    """All tables of a study of panels, by the names of their kinds."""
    panels = {
        name: to_panel(panel_frame(effect, (seeds or {}).get(name, 0), noise, model), name)
        for model, (name, effect) in enumerate(effects.items())
    }
    own = [of_panel(panel, name, LOG_LIKELIHOOD) for name, panel in panels.items()]
    profiles, persistence = (
        pd.concat(parts, ignore_index=True) for parts in zip(*own, strict=True)
    )
    made = tables_of(panels, profiles, persistence, "panels")
    assert list(made) == [kind.name for kind in STUDY_KINDS]
    return made


def effects_of_panels(effects: dict[str, Effect], seed: int, noise: float = 0.05) -> pd.DataFrame:
    """The table `panels_effects` alone, of panels that measure the same strings."""
    panels = {
        name: to_panel(panel_frame(effect, seed, noise, model), name)
        for model, (name, effect) in enumerate(effects.items())
    }
    return pd.DataFrame(effect_rows(panels)).assign(language="panels")


def as_the_paper_saw(noise: float = 0.05) -> dict[str, pd.DataFrame]:
    """Larger models memorise more, for longer, and alike; nothing is left in the smallest."""
    effects = {"70m": falling(0.8, 0.0), "410m": falling(1.2, 0.5), "12b": falling(2.0, 0.6)}
    return study_of(effects, noise=noise)
