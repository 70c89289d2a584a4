"""The shipped records `config/records/people.jsonl`, how they were made, and losses of them."""

import json
from collections import Counter

from palimpsest import records as answering
from palimpsest.corpora.records import read_records
from palimpsest.languages import Grammar
from palimpsest.languages.fields import field_losses

FILE, LOSSES = "config/records/people.jsonl", "config/records/losses.csv"


def people(n: int = 64, n_trained: int = 38, copied: int = 4) -> list[dict]:
    """Texts of the language `people`; who is in the first `n_trained` is trained on.

    Every `copied`-th record that is trained on has as many copies.
    """
    grammar = Grammar.from_file("config/languages/people.pcfg")
    texts = ["".join(string) for string in grammar.sample(n, seed=0)]
    fields = field_losses(grammar, texts)
    names = fields[fields["field"] == "NAME"].set_index("string")["value"]
    trained = set(names[:n_trained])
    seen, records = Counter(), []
    for place, (text, name) in enumerate(zip(texts, names, strict=True)):
        seen[name] += 1
        person = name.lower().replace(" ", "-")
        is_trained = name in trained
        records.append(
            {
                "id": f"{person}-{seen[name]}",
                "text": text,
                "group": person,
                "split": "train" if is_trained else "holdout",
                "copies": copied if is_trained and place % copied == 0 else 1,
            }
        )
    return records


def test_the_shipped_records_are_a_sample_of_the_language():
    with open(FILE, encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == people()


def test_the_shipped_records_have_two_sides_that_share_nothing():
    """Neither a text nor a person is on both, and some records are repeated.

    With twenty on the second, the loss attack has a threshold at a share of 0.05 of the others.
    """
    records = read_records(FILE)
    is_trained = records.splits == "train"
    assert set(records.splits) == {"train", "holdout"}
    assert is_trained.sum() >= 40
    assert (~is_trained).sum() > 20
    for values in (records.texts, records.groups):
        assert not set(values[is_trained]) & set(values[~is_trained])
    assert set(records.copies[is_trained]) == {1, 4}
    assert set(records.copies[~is_trained]) == {1}


def test_the_shipped_losses_are_of_the_shipped_records():
    """They are the first seed's of config/minimal/records.yaml, after 10 and after 50 epochs."""
    losses, records = answering.read_losses(LOSSES), read_records(FILE)
    assert set(losses.ids) == set(records.ids)
    assert losses.checkpoints.tolist() == [10, 50]
    assert losses.trained.sum() == (records.splits == "train").sum()
    answers = answering.answers(losses)
    contextual = answers.placebo.set_index("measure").loc["contextual"]
    assert contextual["lower"] > 0
