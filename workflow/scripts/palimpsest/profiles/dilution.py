"""The factorial of dilution and order: copies of a string, position, and amount of other strings.

The amount is the size of the stream: the number of its training strings, with copies. Copies and
position are the arms of every stream. An arm is a group of strings, the probes, that are trained on
in equally many copies and in the same quarter of the stream.

Source: Hubble: a Model Suite to Advance the Study of LLM Memorization (ICLR 2026), which places
strings in known numbers of copies into corpora of two sizes, and into parts of the training.
"""

from collections.abc import Iterator

from palimpsest.configuration.checks import too_many_strings, unknown_languages, unknown_model
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.profiles.factorial import Design
from palimpsest.profiles.interventions import DILUTED, DILUTED_WITHOUT, QUARTERS, STREAM
from palimpsest.regimes import OnePass
from palimpsest.requests import Runs

VARIANTS = (DILUTED, DILUTED_WITHOUT)


def design(settings: Settings) -> Design | None:
    block = settings.block("profiles")
    asked = block["dilution"]
    return None if asked is None else Design.of({**block, **asked})


def streams(settings: Settings) -> Iterator[Runs]:
    made = design(settings)
    if made is None:
        return
    asked = settings.block("profiles")["dilution"]
    for language in asked["languages"]:
        for size in made.sizes:
            cohorts = made.cohorts(size)
            length = OnePass(cohorts, made.n_probes + made.validation, every=cohorts // QUARTERS)
            for variant in VARIANTS:
                given = asked["model"], language, size, variant, settings.seeds
                recipe = settings.block("profiles")["recipe"]
                yield Runs(*given, recipe, length, job=STREAM, label=DILUTED)


def mistakes(settings: Settings) -> Iterator[Mistake]:
    made = design(settings)
    if made is None:
        return
    asked, key = settings.block("profiles")["dilution"], "profiles/dilution"
    yield from unknown_model(settings, f"{key}/model", asked["model"])
    yield from unknown_languages(settings, f"{key}/languages", asked["languages"])
    quarters = QUARTERS * made.cohort_size
    for place, size in enumerate(asked["sizes"]):
        if size % quarters:
            yield Mistake(
                f"{key}/sizes[{place}]",
                f"{size} strings are not {QUARTERS} equal quarters of whole macro-batches; it must "
                f"be a multiple of {quarters}, which is {QUARTERS} times profiles/cohort_size",
            )
            return
    smallest = made.sizes[0]
    if (needed := made.fullest(smallest)) > made.cohort_size:
        yield Mistake(
            f"{key}/probes",
            f"{made.probes} strings of each arm do not fit into a quarter of the smallest stream, "
            f"{smallest} strings: a macro-batch would have to hold {needed} copies, and "
            f"profiles/cohort_size is {made.cohort_size}; lower probes or copies, or raise sizes",
        )
    if made.validation < 2 * len(made.arms):
        yield Mistake(
            "profiles/validation",
            f"{made.validation} strings are too few: half of them are the placebos of the "
            f"{len(made.arms)} arms of profiles/dilution; raise it to {2 * len(made.arms)}",
        )
    yield from too_many_strings(settings, f"{key}/sizes", [made.n_strings], asked["languages"])
