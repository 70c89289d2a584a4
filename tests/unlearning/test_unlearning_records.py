"""Unlearning on records of a user's own: what is forgotten, and what is refused in one line."""

import json
import re

import pytest

from helpers.experiments import DEFAULT, experiment, message
from palimpsest.corpora import read_records_corpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.unlearning import forgetting_data
from palimpsest.unlearning.forgetting_data import build_forgetting, read_forget_set

NAMES = {"form": "tofu", "id": "key", "group": "author", "split": "part"}
N_AUTHORS, N_FORGOTTEN, N_TRAINED = 8, 2, 5


def questions(split=True):
    """Two questions about each author, in TOFU's form; the first authors are to be forgotten."""
    found = []
    for author in range(N_AUTHORS):
        part = "forget" if author < N_FORGOTTEN else "retain" if author < N_TRAINED else "holdout"
        for number, topic in enumerate(("born", "known")):
            found.append(
                {
                    "key": f"{author}-{number}",
                    "question": f"Where was author {author} {topic}?",
                    "answer": f"In the city of {topic} {author * 37 % 11}.",
                    "author": f"author {author}",
                    **({"part": part} if split else {}),
                }
            )
    return found


@pytest.fixture
def written(tmp_path):
    """A function that writes records and gives the path of their file."""

    def write(records):
        path = tmp_path / "questions.json"
        path.write_text(json.dumps(records))
        return str(path)

    return write


def named(records):
    """The names of the columns that some records have."""
    return {key: name for key, name in NAMES.items() if key == "form" or name in records[0]}


def problem(written, records, size=10, forget_file=None, **options):
    """Both variants, made as the workflow makes them."""
    corpus = read_records_corpus(written(records), named(records))
    options = {"validation": 2, "share": 0.4, "forget_file": forget_file, **options}
    request = forgetting_data.DatasetRequest(
        Sampler("mine", corpus, 0), "original", size, 4, False, options=options
    )
    return {
        "original": forgetting_data.original(request),
        "retain": forgetting_data.retain(request),
    }


@pytest.mark.parametrize("groups", ["string", "record"])
def test_the_split_says_what_is_forgotten(written, groups):
    """Nothing is drawn; the other training records are retained, and nothing else is trained on."""
    both = problem(written, questions(), groups=groups)
    original, retain = both["original"], both["retain"]
    for split, authors in (("forget", range(2)), ("train", range(2, 5))):
        texts = original.loc[original["split"] == split, "text"]
        assert {text.split()[3] for text in texts} == set(map(str, authors))
        assert len(texts) == 2 * len(authors)
    unseen = original[original["split"].isin(["test", "validation"])]
    assert set(unseen["count"]) == {0}
    assert {int(text.split()[3]) for text in unseen["text"]} <= set(range(5, 8))
    assert (retain["count"] > 0).tolist() == (retain["split"] == "train").tolist()


def test_groups_of_the_file_are_forgotten_as_a_whole(written):
    """Without the split forget, a share of the groups is drawn."""
    records = [{**one, "part": one["part"].replace("forget", "train")} for one in questions()]
    original = problem(written, records, groups="record")["original"]
    trained = original[original["count"] > 0]
    by_group = trained.groupby("group")["split"].agg(["nunique", "first", "size"])
    assert by_group["nunique"].tolist() == [1] * N_TRAINED
    assert by_group["size"].tolist() == [2] * N_TRAINED
    assert (by_group["first"] == "forget").sum() == 2


def test_no_group_is_divided_between_training_and_validation(written):
    """Of 16 records in groups of two, the training has 9, the test 4, and validation 2 or 3."""
    problem(written, questions(split=False), size=9, groups="record")
    said = message(
        lambda: problem(written, questions(split=False), 9, groups="record", validation=3)
    )
    assert re.search(
        "json: records of the group '.*' would be in the training and in the validation set; "
        "lower datasets/test_size, unlearning/size or unlearning/validation, or add records",
        said,
    )


def test_a_file_names_records_by_their_ids(written, tmp_path):
    (tmp_path / "forget.txt").write_text("2-0\n2-1\n")
    records = [{**one, "part": one["part"].replace("forget", "train")} for one in questions()]
    file = str(tmp_path / "forget.txt")
    original = problem(written, records, groups="record", forget_file=file)["original"]
    forgotten = original.loc[original["split"] == "forget", "text"]
    assert [text.split("\n")[0] for text in forgotten] == [
        "Where was author 2 born?",
        "Where was author 2 known?",
    ]
    corpus = read_records_corpus(written(records), named(records))
    (tmp_path / "forget.txt").write_text("2-0\n22-1\n")
    with pytest.raises(UserError, match=r"no record has the id '22-1' .did you mean '2-1'"):
        read_forget_set(tmp_path / "forget.txt", corpus)


def test_grammars_have_no_groups_of_records():
    settings = experiment(DEFAULT).settings
    sampler = Sampler("L3", settings.corpus("L3"), 0)
    with pytest.raises(UserError, match="a grammar has no groups by record; allowed are derivat"):
        build_forgetting(sampler, 12, 4, 4, False, "record", 0.25)


def asked(file, names, test_size=4, **unlearning):
    """The experiment of a configuration that unlearns these records."""
    block = {"languages": ["mine"], "size": 10, "groups": "record", "validation": 2, **unlearning}
    given = {
        "corpora": {"mine": {"file": file, **names}},
        "datasets": {"test_size": test_size},
        "unlearning": block,
    }
    return experiment(DEFAULT, command_line=given, targets=["unlearning"])


def test_a_study_of_records_is_asked_for(written):
    """With the split forget, a share has no effect, and may be too small to draw anything."""
    records = questions()
    made = asked(written(records), named(records), share=0.01)
    said = (
        "--config: unlearning/share: has no effect: the split of mine says what is forgotten; "
        "leave it out"
    )
    assert said in made.notes
    assert said not in asked(written(records), named(records)).notes
    drawn = questions(split=False)
    assert said not in asked(written(drawn), named(drawn), share=0.25).notes


@pytest.mark.parametrize(
    ("unlearning", "said"),
    [
        ({"size": 8}, "unlearning/size: 8 strings are not the training records of mine, "),
        ({"size": 8}, "they are 10, with copies; set it to 10"),
        ({"size": 64}, "from mine, which has at most 10; lower it or add records"),
        ({"groups": "derivation"}, "groups: derivation is for grammars, and mine has records; set"),
        ({"forget": "Makefile"}, "with the split forget are forgotten already; leave this key out"),
        ({"validation": 3}, "3 validation strings and 4 test strings (datasets/test_size) are"),
        ({"validation": 3}, "the 6 records of mine that are not trained on; lower one of the two"),
        ({"languages": ["L3"]}, "'L3' is no corpus of records, and unlearning/groups: record"),
    ],
)
def test_what_does_not_fit_the_records_is_refused(written, unlearning, said):
    records = questions()
    assert said in message(lambda: asked(written(records), named(records), **unlearning))


def test_refusals_are_for_texts(written):
    """A method of one's own, on a language of symbols and on records."""
    phase = {"erase": "refusal-dpo", "refusals": ["No."], "share": 1, "rate": 1}
    method = {"own_methods": {"mine": {"phases": [phase]}}, "methods": ["mine"]}
    names = named(questions())
    asked(written(questions()), names, **method)
    symbols = {"languages": ["L3"], "groups": "string"}
    line = message(lambda: asked(written(questions()), names, **symbols, **method))
    assert "'L3' is a language of symbols, and refusal-dpo needs texts: name a corpus" in line


def changed(place, **values):
    records = questions()
    records[place] |= values
    return records


@pytest.mark.parametrize(
    ("records", "unlearning", "said"),
    [
        (
            [{**one, "part": one["part"].replace("retain", "forget")} for one in questions()],
            {},
            "the forget set has all training strings, so nothing is retained",
        ),
        (
            [{**one, "part": "test"} for one in questions()],
            {},
            "unlearning/size: {file}: nothing can be trained on these records, because all have "
            "the split test or holdout; give some the split train, forget or retain, or leave",
        ),
        (changed(2, part="retain"), {}, "splits the group 'author 1'"),
        (
            changed(15, question="Where was author 4 born?", answer=questions()[8]["answer"]),
            {},
            "the record '7-1' is not to be trained on and has the text of '4-0', which is; give",
        ),
        (
            changed(3, question="Where was author 4 born?", answer=questions()[8]["answer"]),
            {"groups": "string"},
            "the record '4-0' is not to be forgotten and has the text of '1-1', which is; give",
        ),
        (
            [{**one, "author": "all"} for one in questions(split=False)],
            {},
            "mine has only one group of records to be trained on; add records of other groups",
        ),
        (
            questions(split=False),
            {"share": 0.05, "languages": ["mine"]},
            "0.05 of the 8 groups of mine is 0 groups, so nothing would be forgotten; set it to",
        ),
        (
            questions(split=False),
            {"size": 12},
            "the 4 records of mine that are not trained on; lower one of the two, or lower",
        ),
    ],
)
def test_records_that_cannot_be_forgotten_are_refused(written, records, unlearning, said):
    file = written(records)
    said = said.replace("{file}", file)
    assert said in message(lambda: asked(file, named(records), **unlearning))
