"""The shipped records `config/records/people.jsonl`, and how they were made."""

import json
from collections import Counter

from palimpsest.corpora.records import read_records
from palimpsest.languages import Grammar
from palimpsest.languages.fields import field_losses

FILE = "config/records/people.jsonl"


def people(n: int = 60, n_trained: int = 40, copied: int = 4) -> list[dict]:
    """Texts of the language `people`; whoever is in the first `n_trained` is trained on.

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
    """Neither a text nor a person is on both, and some records are repeated."""
    records = read_records(FILE)
    is_trained = records.splits == "train"
    assert set(records.splits) == {"train", "holdout"}
    assert 35 <= is_trained.sum() <= 45
    assert len(records.ids) == 60
    for values in (records.texts, records.groups):
        assert not set(values[is_trained]) & set(values[~is_trained])
    assert set(records.copies[is_trained]) == {1, 4}
    assert set(records.copies[~is_trained]) == {1}
