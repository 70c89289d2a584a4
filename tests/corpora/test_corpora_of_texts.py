"""Records of a user's own and grammars of texts as corpora."""

import itertools
import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binomtest

from helpers.experiments import message
from helpers.projects import ROOT
from helpers.records import corpus
from palimpsest import tables
from palimpsest.corpora import read_corpus, string_of, text_of
from palimpsest.corpora.corpus import TEST, TRAIN
from palimpsest.corpora.files import read_records_corpus
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import (
    SPLITS,
    Records,
    corpus_table,
    in_windows,
    read_records,
    records_of_table,
)
from palimpsest.corpora.records_corpus import RecordsCorpus
from palimpsest.corpora.text_grammar_corpus import TextGrammarCorpus
from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.models.alphabets import byte_level_tokenizer


@st.composite
def with_groups(draw) -> RecordsCorpus:
    """Records with groups of many sizes, some of which share texts."""
    n = draw(st.integers(2, 40))
    of = st.lists(st.integers(0, draw(st.integers(1, 30))), min_size=n, max_size=n)
    groups, texts = draw(of), draw(of)
    copies = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    return corpus([f"text {t}" for t in texts], [f"g{g}" for g in groups], copies=copies)


def n_parts(groups, texts) -> int:
    """Number of parts into which records fall if no group and no text is in two parts."""
    nodes = {name: place for place, name in enumerate({*groups, *((t,) for t in texts)})}
    one, other = ([nodes[name] for name in names] for names in (groups, [(t,) for t in texts]))
    links = coo_array((np.ones(len(one)), (one, other)), shape=(len(nodes),) * 2)
    return connected_components(links, directed=False)[0]


def assert_whole(labels, of_side) -> None:
    """No label is on two sides."""
    sides = defaultdict(set)
    for label, side in zip(labels, np.asarray(of_side).tolist(), strict=True):
        sides[label].add(side)
    assert all(len(found) == 1 for found in sides.values())


@settings(max_examples=150)
@given(with_groups(), st.integers(0, 99), st.floats(0, 0.9), st.integers(2, 5))
def test_groups_and_equal_texts_stay_together(mine, seed, holdout, n_folds):
    """In the holdout and in every fold; also groups that only share a text with a third one."""
    groups, texts = mine.records.groups, mine.records.whole_texts
    trained = mine.sides(seed, holdout)
    for of_side in (mine.together, trained, mine.folds(seed, n_folds, trained)):
        assert_whole(groups, of_side)
        assert_whole(texts, of_side)
    n_groups = len({*mine.together})
    assert n_groups == n_parts(groups, texts)
    assert {*mine.together} <= {*groups}
    n_unseen = len({*mine.together[~trained]})
    assert n_unseen == round(holdout * n_groups) == n_groups - mine.n_trained_groups(holdout)


@settings(max_examples=150)
@given(with_groups(), st.integers(0, 99))
def test_an_order_has_groups_and_copies_in_a_row(mine, seed):
    """Training takes one end of the order, and tests take the other one."""
    drawn = mine.draw(10**6, seed, TRAIN)[0]
    assert Counter(drawn) == Counter(
        text for text, n in zip(mine.strings, mine.copies, strict=True) for _ in range(n)
    )
    assert len(drawn) == mine.most_draws()
    group_of = mine.groups(drawn, "record")
    names = [group_of[string] for string in drawn]
    assert len(list(itertools.groupby(names))) == len({*names})
    assert mine.draw(5, seed, TRAIN)[0] == drawn[:5]
    if n_parts(mine.records.groups, mine.records.whole_texts) > 1:
        assert group_of[drawn[0]] != group_of[mine.draw(1, seed, TEST)[0][0]]


@given(with_groups(), st.integers(0, 99), st.integers(2, 6))
def test_folds_have_equally_many_groups_of_both_sides(mine, seed, n_folds):
    trained = mine.sides(seed, 0.4)
    fold = mine.folds(seed, n_folds, trained)
    for side in (trained, ~trained):
        of_group = dict(zip(mine.together[side], fold[side], strict=True))
        sizes = [list(of_group.values()).count(number) for number in range(n_folds)]
        assert max(sizes) - min(sizes) <= 1


def test_a_large_group_is_as_likely_to_be_held_out_as_a_small_one():
    """If the holdout were counted in records, it would be on the trained side more often."""
    mine = corpus([f"text {n}" for n in range(30)], ["large"] * 20 + [f"g{n}" for n in range(10)])
    held_out = [~mine.sides(seed, 0.3) for seed in range(600)]
    for place in (0, 25):
        n = sum(side[place] for side in held_out)
        assert binomtest(int(n), 600, 3 / 11).pvalue > 1e-4
    n_folds = [mine.folds(seed, 3, np.ones(30, bool))[0] for seed in range(600)]
    assert min(Counter(n_folds).values()) > 140


def test_another_seed_gives_another_holdout_and_other_folds():
    mine = corpus([f"text {n}" for n in range(40)])
    one, other = (mine.sides(seed, 0.5) for seed in (0, 1))
    assert (one != other).any()
    assert (mine.sides(0, 0.5) == one).all()
    everything = np.ones(40, bool)
    assert (mine.folds(0, 4, everything) != mine.folds(1, 4, everything)).any()


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_decides_the_side(split):
    mine = corpus(["one", "two", "three"], splits=["train", split, "holdout"], copies=[2, 3, 4])
    is_trained = [True, split in ("train", "forget", "retain"), False]
    for holdout in (0, 0.9):
        assert mine.sides(0, holdout).tolist() == is_trained
    expected = {"one": 2, "two": 3 * is_trained[1]}
    assert Counter(text_of(s) for s in mine.draw(99, 0, TRAIN)[0]) == Counter(**expected)
    assert {text_of(s) for s in mine.draw(99, 0, TEST)[0]} == {
        "three",
        *([] if is_trained[1] else ["two"]),
    }
    assert mine.n_strings() == 1 + is_trained[1]


@pytest.mark.parametrize("split", ["test", "holdout"])
def test_records_of_which_none_is_to_be_trained_on_can_only_be_asked_about(split):
    mine = corpus(["one", "two"], splits=[split, split])
    assert len(mine.draw(2, 0, TEST)[0]) == 2
    for training in (
        mine.most_draws,
        mine.n_strings,
        mine.n_trained_groups,
        lambda: mine.draw(1, 0),
    ):
        assert message(training) == (
            "mine: nothing can be trained on these records, because all have the split test or "
            "holdout; give some the split train, forget or retain, or leave the splits out"
        )


def test_the_column_trained_decides_the_side():
    texts = ["one one one", "two", "three three"]
    mine = corpus(texts, trained=[True, False, True])
    assert mine.sides(0, 0.9).tolist() == [True, False, True]
    # A tokenizer of the training records alone would cut them into fewer tokens than the others.
    assert mine.alphabet.tokenizer == byte_level_tokenizer(texts)
    assert corpus([*texts, "two"]).alphabet == mine.alphabet
    both = corpus(texts, trained=[True, False, True], splits=["forget", "test", "retain"])
    assert both.is_trained.tolist() == [True, False, True]
    said = message(
        lambda: corpus(texts, trained=[True, True, True], splits=["train", "test", "train"]).draw(
            1, 0
        )
    )
    assert said == (
        "mine: the record 'r1' is of the split test and trained on; mend the row, or leave one of "
        "the two columns out"
    )


def test_what_records_cannot_answer_is_refused_in_a_line():
    mine = corpus(["one", "two"])
    assert message(lambda: mine.groups(mine.strings, "derivation")) == (
        "mine: records have no groups by derivation; allowed are record, string"
    )
    assert np.isnan(mine.log_probability(mine.strings)).all()
    assert np.isnan(mine.optimal_loss(mine.strings, True)).all()
    # One text, after two prompts: its run could predict one of the two only.
    said = message(lambda: corpus(["x one", "one"], prompts=["Q ", "Q x "]))
    assert "the prompt of the record 'r1' ends elsewhere than in another record" in said


def test_a_prompt_is_before_its_text():
    mine = corpus(["one", "two", "three"], prompts=["Q?", "", "Q: "])
    assert [text_of(string) for string in mine.strings] == ["Q?\none", "two", "Q: three"]
    assert mine.prompts == {"Q?\none": 3, "Q: three": 3}
    assert not corpus(["one"], prompts=[""]).prompts
    assert not corpus(["one"]).prompts


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"trained": [True, False, True]},
        {"split": ["train", "holdout", "forget"], "copies": [1, 2, 30]},
        {"prompt": ["", "Q: ", " "], "group": ["NA", "null", "01"], "id": ["1", "01", "nan"]},
    ],
    ids=str,
)
def test_records_come_back_from_their_table(tmp_path, columns):
    texts = ['a "b",\n\tc; <b>&amp;</b> \x00\x07', "  é東京 $(rm) '", "NA"]
    rows = [
        {"text": text, **{name: values[place] for name, values in columns.items()}}
        for place, text in enumerate(texts)
    ]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    expected = read_records(tmp_path / "mine.json")
    path = tmp_path / "corpus.parquet"
    tables.write(path, corpus_table(tmp_path / "mine.json", {}), CORPUS)
    found = records_of_table(path)
    for name in ("ids", "texts", "groups", "trained", "splits", "prompts"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        assert one is None or one.tolist() == other.tolist(), name
    assert found.copies.tolist() == columns.get("copies", [1, 1, 1])
    assert found.whole_texts == expected.whole_texts
    read, given = read_corpus(path), read_records_corpus(tmp_path / "mine.json", {})
    assert isinstance(read, RecordsCorpus)
    assert read.strings == given.strings
    assert read.prompts == given.prompts
    assert read.draw(99, 3)[0] == given.draw(99, 3)[0]
    assert read.alphabet == given.alphabet
    assert [string_of(read, text_of(string)) for string in read.strings] == read.strings


# Grammars of texts

# Many texts may be cut in two ways or more: `aab` is a a b, a ab, aa b and aab.
RULES = {
    "S": [(["PART", "PART"], 0.5), (["PART"], 0.3), (["'é '", "PART", "PART"], 0.2)],
    "PART": [(["'a'"], 0.3), (["'aa'"], 0.2), (["'b'"], 0.25), (["'ab'"], 0.15), (["'aab'"], 0.1)],
}
AMBIGUOUS = "%text\n" + "\n".join(
    f"{left} -> " + " | ".join(f"{' '.join(right)} [{p}]" for right, p in rights)
    for left, rights in RULES.items()
)


def derived(symbol: str) -> list[tuple[str, float]]:
    """The text and the probability of every derivation of a symbol."""
    if symbol not in RULES:
        return [(symbol.strip("'"), 1.0)]
    found = []
    for right, p in RULES[symbol]:
        for parts in itertools.product(*map(derived, right)):
            text = "".join(part for part, _ in parts)
            found.append((text, p * math.prod(q for _, q in parts)))
    return found


@pytest.fixture(scope="module")
def probability() -> dict[str, float]:
    """Of every text of the grammar, summed over all ways to derive it."""
    found = defaultdict(float)
    for text, p in derived("S"):
        found[text] += p
    assert len(found) < len(derived("S"))
    assert math.fsum(found.values()) == pytest.approx(1)
    return dict(found)


@pytest.fixture(scope="module")
def ambiguous() -> TextGrammarCorpus:
    return TextGrammarCorpus(Grammar.from_string(AMBIGUOUS))


def test_the_probability_of_a_text_is_summed_over_its_cuts(ambiguous, probability):
    strings = [(text,) for text in probability]
    found = np.exp(ambiguous.log_probability(strings))
    np.testing.assert_allclose(found, list(probability.values()), rtol=1e-12)
    assert ambiguous.log_probability([("ba ",), ("c",)]).tolist() == [-np.inf, -np.inf]


def test_an_optimal_loss_is_per_byte(ambiguous, probability):
    """With the end, minus the log probability; without it, that of all texts that begin so."""
    strings = [(text,) for text in probability]
    n_bytes = np.array([len(text.encode()) for text in probability])
    assert (n_bytes > [len(text) for text in probability]).any()
    with_end = ambiguous.optimal_loss(strings, True) * (n_bytes + 1)
    np.testing.assert_allclose(with_end, -np.log(list(probability.values())), rtol=1e-12)
    without = ambiguous.optimal_loss(strings, False) * n_bytes
    begins = [
        math.fsum(p for other, p in probability.items() if other.startswith(text))
        for text in probability
    ]
    np.testing.assert_allclose(without, -np.log(begins), rtol=1e-10, atol=1e-12)
    assert (without < with_end - 1e-9).any()


def test_texts_are_drawn_as_often_as_they_are_probable(ambiguous, probability):
    drawn, log_p = ambiguous.draw(20_000, 5)
    counts = Counter(text_of(string) for string in drawn)
    assert counts.keys() <= probability.keys()
    for text, p in probability.items():
        assert binomtest(counts[text], 20_000, p).pvalue > 1e-6
    # A derivation is no more probable than its text.
    assert (log_p <= ambiguous.log_probability(drawn) + 1e-9).all()
    assert ambiguous.draw(10, 5)[0] == drawn[:10]
    assert ambiguous.draw(10, 5, TEST)[0] != drawn[:10]


def test_the_tokenizer_of_twins_is_that_of_the_language():
    """It depends on no size and no seed, only on the grammar."""
    people = TextGrammarCorpus(Grammar.from_file(ROOT / "config/languages/people.pcfg"))
    again = TextGrammarCorpus(Grammar.from_file(ROOT / "config/languages/people.pcfg"))
    again.draw(7, 3)
    assert again.alphabet == people.alphabet
    assert people.alphabet.is_text
    other = TextGrammarCorpus(Grammar.from_file(ROOT / "config/languages/parcels.pcfg"))
    assert other.alphabet != people.alphabet


def test_texts_have_no_groups_by_derivation(ambiguous):
    assert message(lambda: ambiguous.groups([("a",)], "derivation")).endswith(
        "texts have no groups by derivation; their groups are by string"
    )


@given(text=st.text(min_size=1).filter(str.strip), n_words=st.integers(1, 5))
def test_windows_lose_no_letter(text, n_words):
    """And each has at most so many words, and some."""
    records = Records(np.array(["a"], object), np.array([text], object), None, np.array(["g"]))
    cut = in_windows(records, n_words)
    assert "".join(cut.texts) == text
    assert all(1 <= len(window.split()) <= n_words for window in cut.texts)
    assert set(cut.groups) == {"g"}


def test_windows_are_named_after_their_record():
    trained = np.array([True, False])
    records = Records(
        np.array(["a", "b"], object),
        np.array(["one two three", "four"], object),
        trained,
        np.array(["a", "b"], object),
        copies=np.array([3, 1]),
    )
    cut = in_windows(records, 2)
    assert list(cut.ids) == ["a:1", "a:2", "b"]
    assert list(cut.texts) == ["one two", " three", "four"]
    assert list(cut.trained) == [True, True, False]
    assert list(cut.copies) == [3, 3, 1]


def test_a_window_does_not_part_a_text_from_its_prompt():
    records = Records(
        np.array(["a"]), np.array(["x y"]), None, np.array(["a"]), prompts=np.array(["why"])
    )
    with pytest.raises(UserError, match="leave out the window or the prompts"):
        in_windows(records, 1)
