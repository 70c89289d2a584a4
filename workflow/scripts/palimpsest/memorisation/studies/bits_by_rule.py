"""The study `bits_by_rule`: which rules of the grammar the memorised bits belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from palimpsest.configuration.checks import texts
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import LEARNING, columns
from palimpsest.memorisation.studies.training_size import SIZES_KEY
from palimpsest.memorisation.study import StudyOfTokens, kind_of_study

pd = lazy_import("pandas")
by_rule = lazy_import("palimpsest.memorisation.bits_by_rule")

KIND = kind_of_study(
    "bits_by_rule",
    "One row per model, size, seed, epoch and rule of the grammar: memorised bits of the symbols "
    "that the rule decides. The sum over all rows of a run and epoch is that of the table `bits`.",
    columns(
        """
        model language size seed variant epoch optimal_epoch level nonterminal rule probability
        n_train n_unseen symbols symbols_unseen optimal optimal_unseen bits bits_unseen
        """,
        level="int?: fewest steps from the start symbol to the non-terminal; null: no rule",
        nonterminal="str?: left-hand side of the rule; null: no rule",
        rule="str?: the rule, of a non-terminal with a choice; null: symbols that no rule decides,"
        " because the symbols before them determine them",
        probability="float?: probability of the rule; null: no rule",
        n_train="int: distinct training strings",
        symbols="float: symbols that the rule decides, mean over the distinct training strings; a "
        "symbol that several rules decide is shared among them",
        symbols_unseen="float?: the same mean over the unseen strings; NaN without any",
        optimal="float: Bayes-optimal loss of these symbols, bits per distinct training string: "
        "what a model can hold of them at most",
        optimal_unseen="float?: the same mean over the unseen strings; NaN without any",
        bits="float: Bayes-optimal loss minus the model's loss of these symbols, bits per distinct"
        " training string",
    ),
)


@reads(strings=STRINGS, learning=LEARNING)
@makes(KIND)
def table(
    *,
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    tokens: list[str],
    corpus: list[str],
    predict_end: bool,
) -> pd.DataFrame:
    """Memorised bits of training strings and unseen strings by rule, for every run and epoch.

    Parameters
    ----------
    tokens : paths of the tables `tokens` of the runs
    corpus : path of the grammar of the language, in a list
    predict_end : whether the end of a string is a predicted token

    Source: Palimpsest's own split of the bits of arXiv 2505.24832.
    """
    (path,) = corpus
    grammar = read_grammar(path)
    return by_rule.bits_by_rule_table(tokens, strings, learning, grammar, predict_end)


class BitsByRule(StudyOfTokens):
    name = "bits_by_rule"
    order = 95
    title = "Which choices are memorised"
    description = "Memorised bits, split over the rules of the grammar; its runs keep token losses."
    text = (
        "The memorised bits of a symbol are shared among the rules of the grammar whose "
        "choice it reveals. This shows whether a model holds the small choices at the ends of"
        " the grammar or the large ones at its top."
    )
    keys: ClassVar = {"sizes": SIZES_KEY}

    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        """A token of a text belongs to no rule."""
        yield from super().mistakes(settings)
        key = f"memorisation/studies/{self.name}/languages"
        yield from texts(settings, key, self.languages(settings), "this study")


STUDY = BitsByRule()
