"""Memorised bits, split over the rules of the grammar that decide the symbols of the strings."""

import numpy as np
import pandas as pd

from palimpsest import token_losses
from palimpsest.languages import Grammar
from palimpsest.languages.decisions import decisions, levels
from palimpsest.memorisation.bits import memorised_bits
from palimpsest.memorisation.likelihoods import (
    TRAIN,
    UNSEEN,
    check_optimal_losses,
    members_of_groups,
    read_runs,
)
from palimpsest.token_losses import TokenLosses

MEANS = ("symbols", "optimal", "bits")


def bits_by_rule_table(
    paths: list[str],
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    grammar: Grammar,
    predict_end: bool,
) -> pd.DataFrame:
    """The table `bits_by_rule` of some runs on one language.

    Parameters
    ----------
    paths : tables `tokens` of the runs
    strings, learning : stacked tables of these kinds
    grammar : the grammar of the language
    predict_end : whether the end of a string is a predicted token

    Raises `UserError` if a run has no dataset or no learning, or if its dataset was made from
    another grammar.
    """
    decided = Decided(grammar, predict_end)
    return pd.concat(
        [
            rows_of_run(losses, dataset, decided).assign(optimal_epoch=optimum)
            for losses, dataset, optimum in read_runs(paths, strings, learning, token_losses.read)
        ],
        ignore_index=True,
    )


class Decided:
    """The decisions about strings of one language; each distinct string is worked out once.

    `rules` is a table with a row for each rule of a non-terminal with a choice, and a last row,
    with nulls, for symbols that no rule decides.
    """

    def __init__(self, grammar: Grammar, predict_end: bool):
        self._grammar, self._predict_end = grammar, predict_end
        self._known: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        level = levels(grammar)
        rules = decisions(grammar, [], predict_end).rules
        named = [
            (level[rule.lhs], rule.lhs, str(rule).rpartition(" [")[0], rule.probability)
            for rule in rules
        ]
        columns = ["level", "nonterminal", "rule", "probability"]
        self.rules = pd.DataFrame([*named, (None,) * 4], columns=columns)
        self.rules["level"] = self.rules["level"].astype("Int64")

    def of(self, texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Losses float64[tokens] in nats, and shares float64[tokens, rules + 1], end to end."""
        self._work_out([text for text in dict.fromkeys(texts) if text not in self._known])
        losses = [self._known[text][0] for text in texts]
        shares = [self._known[text][1] for text in texts]
        nothing = np.zeros((0, len(self.rules)))
        return np.concatenate([nothing[:, 0], *losses]), np.concatenate([nothing, *shares])

    def _work_out(self, texts: list[str]) -> None:
        strings = [tuple(text.split(" ")) for text in texts]
        found = decisions(self._grammar, strings, self._predict_end)
        ends = np.cumsum(found.lengths)[:-1]
        parts = np.split(found.loss, ends), np.split(found.share, ends)
        self._known.update(zip(texts, zip(*parts, strict=True), strict=False))


def rows_of_run(losses: TokenLosses, strings: pd.DataFrame, decided: Decided) -> pd.DataFrame:
    """The table `bits_by_rule` of one run, without its epoch of optimal learning.

    The bits of a token, by which the model predicts it better than the language does, are shared
    among the rules that decide the token.
    """
    n_epochs, n_rules = len(losses.epochs), len(decided.rules)
    table = pd.DataFrame({**losses.run, "epoch": np.repeat(losses.epochs, n_rules)})
    for column in decided.rules:
        table[column] = pd.concat([decided.rules[column]] * n_epochs, ignore_index=True)
    for group, members in members_of_groups(strings).items():
        loss, share = decided.of(members["text"])
        check_optimal_losses(losses, members, loss)
        bits = memorised_bits(losses.of(members["string_id"]), loss)
        means = {
            "symbols": np.tile(share.sum(axis=0), n_epochs),
            "optimal": np.tile(loss @ share / np.log(2), n_epochs),
            "bits": (bits @ share).ravel(),
        }
        suffix = {TRAIN: "", UNSEEN: "_unseen"}[group]
        table[f"n_{group}"] = len(members)
        for name in MEANS:
            table[f"{name}{suffix}"] = means[name] / len(members) if len(members) else np.nan
    return table
