"""What leakage changes: density and performance of test strings, in tables.

A run of the factorial is trained with one number of exact copies and one of paraphrases of every
leaked test string. All runs of a seed have the same test strings.

Source: LMD3: Language Model Data Density Dependence, sections 5.3 and 6.1, appendices A.6 and A.10.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.corpora import GrammarCorpus, read_corpus
from palimpsest.datasets.kinds import STRINGS
from palimpsest.density import kinds
from palimpsest.density.bins import leakage_bins
from palimpsest.density.densities import embeddings_of
from palimpsest.density.interventions import (
    LEAK_CONDITIONS,
    NO_LEAK,
    Leak,
    leak_of,
    leaked,
    production_left_out,
)
from palimpsest.density.neighbours import nearest
from palimpsest.making import makes, reads
from palimpsest.statistics import with_exact_ties
from palimpsest.traces import Trace

RESULTS = {
    "datasets": [STRINGS],
    "traces": [traces.read],
    "density": [kinds.DENSITY],
    "neighbours": [kinds.NEIGHBOURS],
}  # how the files of a run are read
RETRIEVED = 5, 10  # numbers of neighbours among which leaks are searched, as in the paper


@dataclass(frozen=True)
class Results:
    """The results of one run: tables of the kinds of the same names, and its trace."""

    strings: pd.DataFrame
    trace: Trace
    density: pd.DataFrame
    neighbours: pd.DataFrame

    @property
    def leak(self) -> Leak:
        return leak_of(self.variant) or NO_LEAK

    @property
    def variant(self) -> str:
        return self.trace.run["variant"]

    @property
    def seed(self) -> int:
        return int(self.trace.run["seed"])

    @property
    def keys(self) -> dict:
        return {name: self.trace.run[name] for name in ("model", "language", "size", "seed")}

    def tested(self, epoch: int = -1) -> pd.DataFrame:
        """The test strings, indexed by `string_id`: role, group, length, loss and answer.

        `epoch` is the place of an epoch among those that are measured; the last one, by default.
        """
        strings = self.strings[self.strings["role"].isin(kinds.TESTED)].set_index("string_id")
        losses = pd.Series(self.trace.loss[epoch], self.trace.string_ids)
        found = pd.DataFrame(
            {
                "string_role": strings["role"],
                "group": strings["group"],
                "length": strings["text"].str.split().str.len(),
                "loss": losses.loc[strings.index],
                **self._answers(strings.index, epoch),
            }
        )
        return found.rename_axis("string_id")

    def _answers(self, names: pd.Index, epoch: int) -> dict[str, pd.api.extensions.ExtensionArray]:
        """Whether the answers of test strings are right, and of how many; null without choices.

        A right answer has the highest probability of all choices, as the rank accuracy of LMD3,
        section 5.3. A tie is not right.
        """
        roles = self.strings["role"].fillna("")
        wrong = self.strings[roles.str.startswith(f"{kinds.CHOICE}-")]
        if wrong.empty:
            return {
                "answer_right": pd.array([pd.NA] * len(names), dtype="boolean"),
                "n_choices": pd.array([pd.NA] * len(names), dtype="Int64"),
            }
        nll = pd.Series(self.trace.nll[epoch], self.trace.string_ids)
        of_string = wrong["role"].str.rpartition("-")[2].to_numpy()
        others = nll.loc[wrong["string_id"]].groupby(of_string)
        return {
            "answer_right": pd.array(nll.loc[names] < others.min().loc[names], dtype="boolean"),
            "n_choices": pd.array(1 + others.size().loc[names], dtype="Int64"),
        }


def results_of(
    datasets: Sequence[pd.DataFrame],
    traces: Sequence[Trace],
    density: Sequence[pd.DataFrame],
    neighbours: Sequence[pd.DataFrame],
) -> Iterator[Results]:
    """Yield the results of some runs; all arguments have the same order of runs."""
    for one in zip(datasets, traces, density, neighbours, strict=True):
        yield Results(*one)


@reads(**RESULTS, embeddings=[kinds.EMBEDDINGS])
@makes(*kinds.OF_FACTORIAL)
def factorial(
    embeddings: Sequence[pd.DataFrame], shown: Mapping, **results: Sequence
) -> dict[str, pd.DataFrame]:
    """The tables of a factorial of one model on one language, over all seeds.

    Parameters
    ----------
    embeddings : of the runs with copies and all paraphrases, in the order of the runs
    shown : the kernel and the bandwidth of the table `leakage`
    results : see `results_of`
    """
    runs = list(results_of(**results))
    fullest = [run for run in runs if run.variant == leaked(LEAK_CONDITIONS[-1])]
    retrieved = [
        retrieval_table(run, embeddings_of(run.strings, vectors))
        for run, vectors in zip(fullest, embeddings, strict=True)
    ]
    leakage = leakage_table(runs, shown["kernel"], shown["bandwidth"])
    return {
        kinds.LEAKAGE.name: leakage,
        kinds.DENSITY_BINS.name: leakage_bins(leakage),
        kinds.SEPARATION.name: separation_table(runs),
        kinds.RETRIEVAL.name: pd.concat(retrieved, ignore_index=True),
        kinds.BY_HEART.name: by_heart_table(runs),
    }


@reads(**RESULTS, corpus=read_corpus)
@makes(kinds.LEFT_OUT)
def left_out(corpus: GrammarCorpus, shown: Mapping, **results: Sequence) -> pd.DataFrame:
    """What leaving one production out of the training strings changes, over all seeds.

    `results` are those without one production, and one whole run for each seed. `shown` is a kernel
    and its bandwidth.
    """
    runs = list(results_of(**results))
    whole = {run.seed: run for run in runs if run.variant == leaked(NO_LEAK)}
    without = sorted((run for run in runs if not leak_of(run.variant)), key=lambda run: run.seed)
    setting = shown["kernel"], shown["bandwidth"]
    parts = [
        left_out_table(whole[seed], own, corpus.productions(), setting)
        for seed, own in groupby(without, key=lambda run: run.seed)
    ]
    return pd.concat(parts, ignore_index=True)


def leakage_table(runs: Iterable[Results], kernel: str, bandwidth: float) -> pd.DataFrame:
    parts = []
    for run in runs:
        tested = run.tested()
        is_leaked = (tested["string_role"] == kinds.LEAKED).to_numpy(dtype=bool)
        epochs = run.trace.epochs[-1] * sum(run.leak) * is_leaked
        about = tested.assign(
            n_copies=run.leak.n_copies,
            paraphrases=run.leak.paraphrases,
            effective_epochs=epochs,
            perplexity=np.exp(tested["loss"]),
        )
        beside = run.neighbours[["string_id", "embedding", "nearest", "mean_distance"]]
        of_setting = chosen(run.density, kernel, bandwidth)
        found = of_setting.merge(about, on="string_id")
        parts.append(found.merge(beside, on=["string_id", "embedding"]))
    return pd.concat(parts, ignore_index=True)[kinds.LEAKAGE.names]


def by_heart_table(runs: Iterable[Results]) -> pd.DataFrame:
    """How well test strings are predicted after every epoch that is measured.

    Source: LMD3, figure 16: accuracy on test questions by the number of epochs on them.
    """
    parts = []
    for run in runs:
        for place, epoch in enumerate(run.trace.epochs):
            tested = run.tested(place).astype({"answer_right": float})
            means = tested.groupby("string_role").agg(
                loss=("loss", "mean"),
                answer_right=("answer_right", "mean"),
                n_strings=("loss", "size"),
            )
            about = {**run.keys, **run.leak._asdict(), "epoch": int(epoch)}
            parts.append(means.reset_index().assign(**about))
    return pd.concat(parts, ignore_index=True)[kinds.BY_HEART.names]


def once(leakage: pd.DataFrame) -> pd.DataFrame:
    """One row of a table `leakage` per run and string, with right answers as numbers.

    The table has a row for each embedding, and performance is the same in all of them.
    """
    rows = leakage[leakage["embedding"] == leakage["embedding"].iloc[0]]
    return rows.astype({"answer_right": float})


def chosen(density: pd.DataFrame, kernel: str, bandwidth: float) -> pd.DataFrame:
    is_chosen = (density["kernel"] == kernel) & (density["bandwidth"] == bandwidth)
    return density[is_chosen]


def separation_table(runs: Iterable[Results]) -> pd.DataFrame:
    rows = []
    for run in runs:
        roles = run.tested()["string_role"]
        is_role = {role: (roles == role).to_numpy() for role in kinds.TESTED}
        for about, support in supports(run):
            values = support.reindex(roles.index).to_numpy()
            of_leaked, of_placebo, of_never = (values[is_role[role]] for role in kinds.TESTED)
            rows.append(
                {
                    **run.keys,
                    **run.leak._asdict(),
                    **about,
                    "auc": auc(of_leaked, of_never),
                    "placebo": auc(of_placebo, of_never),
                    "n_strings": len(roles),
                }
            )
    return pd.DataFrame(rows)[kinds.SEPARATION.names]


def supports(run: Results) -> Iterable[tuple[dict, pd.Series]]:
    """Every setting of every estimator with its values by string; a higher value is denser."""
    for (embedding, kernel, bandwidth), rows in run.density.groupby(kinds.OF_SETTING):
        about = {"embedding": embedding, "estimator": kernel, "bandwidth_or_k": bandwidth}
        yield about, rows.set_index("string_id")["log_density"]
    for (embedding, k), rows in run.neighbours.groupby(["embedding", "k"]):
        about = {"embedding": embedding, "estimator": kinds.TOP_K, "bandwidth_or_k": float(k)}
        yield about, -rows.set_index("string_id")["mean_distance"]


def auc(treated: np.ndarray, others: np.ndarray) -> float:
    """The probability that a treated string has more support than another one; ties count half.

    It is the area under the receiver operating characteristic. `treated` and `others` are float[n]
    and float[m].
    """
    both = with_exact_ties(np.concatenate([treated, others]))
    return float((1 + np.sign(both[: len(treated), None] - both[len(treated) :])).mean() / 2)


def retrieval_table(run: Results, embeddings: dict[str, np.ndarray]) -> pd.DataFrame:
    """The table `retrieval` of one run; `embeddings` are float[strings, D], in order of strings.

    A leaked string should find its copies and paraphrases among its nearest training strings.

    Source: LMD3, appendix A.10.1 and table 7.
    """
    strings, leak = run.strings, run.leak
    corpus = np.repeat(np.arange(len(strings)), strings["count"])
    queries = np.flatnonzero(strings["role"].isin([kinds.LEAKED]))
    names = strings["string_id"].to_numpy(dtype=object)
    # Of a paraphrase: the string that it paraphrases
    of_string = np.array([str(role).rpartition("-")[2] for role in strings["role"]], dtype=object)
    wanted = [(names == names[query]) | (of_string == names[query]) for query in queries]
    rows = []
    for embedding, vectors in embeddings.items():
        places = nearest(vectors[queries], vectors[corpus], max(RETRIEVED))[1]
        hits = np.array([own[corpus[some]] for own, some in zip(wanted, places, strict=True)])
        rows += [
            {
                **run.keys,
                "embedding": embedding,
                "k": k,
                "recall": hits[:, :k].sum(axis=1).mean() / sum(leak),
                "ndcg": ndcg(hits[:, :k], sum(leak)),
                "chance": k / len(corpus),
                "n_strings": len(queries),
            }
            for k in RETRIEVED
        ]
    return pd.DataFrame(rows)[kinds.RETRIEVAL.names]


def ndcg(hits: np.ndarray, n_wanted: int) -> float:
    """Mean normalised discounted cumulative gain of hits bool[queries, k], from the nearest.

    `n_wanted` is the number of points that each query should find.
    """
    discount = 1 / np.log2(np.arange(hits.shape[1]) + 2)
    return float((hits @ discount).mean() / discount[:n_wanted].sum())


def left_out_table(
    whole: Results, without: Iterable[Results], productions: list[str], setting: tuple[str, float]
) -> pd.DataFrame:
    """The table `left_out` of a seed: each run without a production against the whole run.

    `setting` is a kernel and its bandwidth.

    Source: LMD3, appendix A.6 and figure 8 (leave one subject out).
    """
    parts = []
    before = changed_columns(whole, *setting)
    for run in without:
        change = changed_columns(run, *setting) - before
        groups = change.join(run.tested()["group"], on="string_id").reset_index()
        means = groups.groupby(["group", "embedding"]).agg(
            n_strings=("string_id", "size"),
            log_density=("log_density", "mean"),
            loss=("loss", "mean"),
            answer_right=("answer_right", "mean"),
        )
        name = productions[production_left_out(run.variant) - 1]
        about = {"left_out": name, "kernel": setting[0], "bandwidth": setting[1]}
        parts.append(means.reset_index().assign(**run.keys, **about)[kinds.LEFT_OUT.names])
    return pd.concat(parts, ignore_index=True)


def changed_columns(run: Results, kernel: str, bandwidth: float) -> pd.DataFrame:
    """Density, loss and right answers of test strings, indexed by string and embedding."""
    of_setting = chosen(run.density, kernel, bandwidth)[["string_id", "embedding", "log_density"]]
    found = of_setting.merge(run.tested()[["loss", "answer_right"]], on="string_id")
    return found.astype({"answer_right": float}).set_index(["string_id", "embedding"])
