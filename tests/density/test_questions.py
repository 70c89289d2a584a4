"""Questions of a file: how they are read, leaked and answered."""

import importlib
import json
import re
import runpy
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from helpers.experiments import ROOT, message
from palimpsest import tables, traces
from palimpsest.corpora import read_corpus, read_records_corpus
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.questions import prompt_of
from palimpsest.corpora.questions_corpus import QuestionsCorpus
from palimpsest.corpora.records import corpus_table
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.density.interventions import LEAK_CONDITIONS, leaked, without_production
from palimpsest.density.kinds import CHOICE, LEAKED, NEVER, PLACEBO
from palimpsest.density.leakage_tables import Results
from palimpsest.density.tested_strings import subjects_nearby
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.models import read_models, resolve
from palimpsest.models.build import build as build_model
from palimpsest.models.build import tokens
from palimpsest.training.recipe import Recipe

MODEL, MODELS = "pythia-1b-twin", str(ROOT / "config/models.tsv")
AS_QUESTIONS = {"form": "questions"}
SUBJECTS = {"anatomy": "bone heart skin lung", "law": "court judge oath crime"}
CHOICES = ["one", "two", "three", "four"]


def question(number: int, subject: str, split: str, **changes) -> dict:
    """A question with words of its subject and three paraphrases."""
    words = SUBJECTS[subject].split()
    about = f"{words[number % 4]} {words[number // 4 % 4]} {number}"
    return {
        "question": f"Which number has the {about}?",
        "subject": subject,
        "choices": CHOICES,
        "answer": number % 4,
        "paraphrases": [f"{verb} the number of the {about}." for verb in ("Say", "Give", "Name")],
        "split": split,
        **changes,
    }


def questions(n: int = 40) -> list[dict]:
    """Two thirds may be trained on; these name no subject in every second row."""
    rows = []
    for number in range(n):
        subject, split = list(SUBJECTS)[number % 2], "test" if number % 3 == 0 else "train"
        rows.append(question(number, subject, split))
        if split == "train" and number % 4 < 2:
            rows[-1] |= {"subject": None, "was": subject}
    return rows


def written(folder, rows: list[dict]) -> str:
    path = folder / "questions.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def corpus(tmp_path) -> QuestionsCorpus:
    return read_records_corpus(written(tmp_path, questions()), AS_QUESTIONS)


def test_a_question_is_a_prompt_and_the_letter_of_its_answer(corpus):
    first = "\n".join(
        [
            "The following are multiple choice questions (with answers) about anatomy.",
            "",
            "Which number has the bone bone 0?",
            *("A. one", "B. two", "C. three", "D. four", "Answer:", "A"),
        ]
    )
    assert corpus.strings[0] == (first,)
    own = corpus.questions[corpus.strings[0]]
    assert [string[0][:-1] for string in own.wrong] == [first[:-1]] * 3
    assert [string[0][-1] for string in own.wrong] == ["B", "C", "D"]
    assert [string[0].splitlines()[2] for string in own.rephrased] == [
        f"{verb} the number of the bone bone 0." for verb in ("Say", "Give", "Name")
    ]
    assert all(string[0].endswith("Answer:\nA") for string in own.rephrased)
    for string in (corpus.strings[0], *own.wrong, *own.rephrased):
        assert corpus.prompts[string[0]] == len(string[0]) - 1
    assert corpus.productions() == ["anatomy", "law"]


def test_questions_are_the_same_from_their_table(tmp_path, corpus):
    table = corpus_table(written(tmp_path, questions()), AS_QUESTIONS)
    tables.write(tmp_path / "corpus.parquet", table, CORPUS)
    again = read_corpus(tmp_path / "corpus.parquet")
    assert again.questions == corpus.questions
    assert again.prompts == corpus.prompts
    np.testing.assert_array_equal(again.is_trained, corpus.is_trained)


@pytest.mark.parametrize("answer", [2, "2", "C", "three"])
def test_an_answer_is_a_number_a_letter_or_a_text(tmp_path, answer):
    rows = [question(1, "law", "test", answer=answer)]
    corpus = read_records_corpus(written(tmp_path, rows), AS_QUESTIONS)
    assert corpus.strings[0][0][-1] == "C"


SUMS = question(1, "law", "test", question="1 + 1?", choices=["1", "2", "3", "4"])


def letters_of(tmp_path, *rows) -> list[str]:
    corpus = read_records_corpus(written(tmp_path, list(rows)), AS_QUESTIONS)
    return [string[0][-1] for string in corpus.strings]


def test_all_answers_are_read_in_one_way(tmp_path):
    """A text of digits is a number where all answers are numbers, and a text where one is none."""
    other = question(0, "law", "test")
    numbers = {"answer": "3"}, {"answer": "2"}
    assert letters_of(tmp_path, other | numbers[0], SUMS | numbers[1]) == ["D", "C"]
    texts = {"answer": "three"}, {"answer": "2"}
    assert letters_of(tmp_path, other | texts[0], SUMS | texts[1]) == ["C", "B"]
    letters = {"answer": "C"}, {"answer": "A", "choices": ["B", "A"]}
    assert letters_of(tmp_path, other | letters[0], SUMS | letters[1]) == ["C", "A"]
    assert letters_of(tmp_path, SUMS | {"answer": 2}) == ["C"]


def test_an_answer_that_may_be_two_choices_is_refused(tmp_path):
    path = written(tmp_path, [SUMS | {"answer": "2"}])
    text = message(lambda: read_records_corpus(path, AS_QUESTIONS))
    assert text.startswith(
        f"{path}:1: answer '2' is choice C by its number from 0 and B by its text;"
    )
    path = written(tmp_path, [SUMS | {"answer": "A", "choices": ["B", "A"]}])
    assert "is choice B by its text and A by its letter" in message(
        lambda: read_records_corpus(path, AS_QUESTIONS)
    )


def test_columns_of_other_names_are_given(tmp_path):
    row = question(1, "law", "test")
    row["q"] = row.pop("question")
    corpus = read_records_corpus(written(tmp_path, [row]), AS_QUESTIONS | {"question": "q"})
    assert "Which number" in corpus.strings[0][0]


WRONG = {
    "an answer of no choice": ({"answer": "five"}, "answer 'five' is none of the 4 choices"),
    "a number beyond the choices": ({"answer": 4}, "answer 4 is none of the 4 choices"),
    "one choice": ({"choices": ["one"], "answer": 0}, "has 1, and a question needs two"),
    "a choice twice": ({"choices": ["one", "one"], "answer": 0}, "has one choice twice"),
    "no answer": ({"answer": None}, "answer is null or missing"),
    "no question": ({"question": None}, "question is null or missing"),
    "an unknown split": ({"split": "exam"}, "split 'exam' is no such part"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_question_that_cannot_be_is_one_line(tmp_path, wrong):
    change, said = WRONG[wrong]
    rows = [question(0, "law", "test"), question(1, "law", "test") | change]
    path = written(tmp_path, rows)
    text = message(lambda: read_records_corpus(path, AS_QUESTIONS))
    assert text.startswith(f"{path}:2: ")
    assert said in text
    assert "\n" not in text


def test_what_is_no_file_of_questions_is_refused(tmp_path):
    twice = [question(1, "law", "test")] * 2
    text = message(lambda: read_records_corpus(written(tmp_path, twice), AS_QUESTIONS))
    assert "asks the same as line 1" in text
    rows = [{"question": "Why?", "answer": "because"}]
    text = message(lambda: read_records_corpus(written(tmp_path, rows), AS_QUESTIONS))
    assert "choices" in text
    text = message(
        lambda: read_records_corpus(written(tmp_path, questions()), AS_QUESTIONS | {"window": 5})
    )
    assert "no window can cut" in text


# Datasets

OPTIONS = {"tests": 10, "leaked": 2, "level": 5, "redrawn": 0.25}


def dataset(corpus, variant, seed=0, function="leaked", size=16) -> pd.DataFrame:
    made_by = f"palimpsest.density.leakage_data:{function}"
    sampler = Sampler("mine", corpus, seed)
    return build(sampler, variant, size, 0, False, options=OPTIONS, made_by=made_by)


@pytest.mark.parametrize("leak", [LEAK_CONDITIONS[0], LEAK_CONDITIONS[-1]], ids=leaked)
def test_leaked_questions_are_trained_on_with_their_paraphrases(corpus, leak):
    table = dataset(corpus, leaked(leak)).set_index("string_id")
    assert table["count"].sum() == 16
    roles = table["role"].value_counts()
    assert roles[[LEAKED, PLACEBO, NEVER]].tolist() == [2, 2, 6]
    strings = {string[0]: own for string, own in corpus.questions.items()}
    for name in table.index[table["role"].isin([LEAKED, PLACEBO, NEVER])]:
        own = strings[table.loc[name, "text"]]
        is_leaked = table.loc[name, "role"] == LEAKED
        assert table.loc[name, "count"] == leak.n_copies * is_leaked
        assert table.loc[name, "group"] == own.subject
        wrong = table[table["role"] == f"{CHOICE}-{name}"]
        assert set(wrong["text"]) == {string[0] for string in own.wrong}
        assert (wrong["count"] == 0).all()
        planted = [string[0] for string in own.rephrased]
        there = table["text"].isin(planted)
        assert there.sum() == leak.paraphrases * is_leaked
        assert (table.loc[there, "count"] == 1).all()
    trained = table[(table["count"] > 0) & table["role"].isna()]
    may_be_trained_on = {corpus.strings[place][0] for place in corpus.trained}
    assert set(trained["text"]) <= may_be_trained_on


def test_without_a_subject_no_question_of_the_subject_is_trained_on(corpus):
    """Questions that name no subject have that of the questions like them."""
    was = {
        prompt_of(row["question"], CHOICES, ""): row["was"] for row in questions() if "was" in row
    }
    for number, subject in enumerate(corpus.productions()):
        table = dataset(corpus, without_production(number + 1), 0, "without_production", 8)
        trained = table[table["count"] > 0]
        assert trained["count"].sum() == 8
        assert set(trained["group"]) == set(SUBJECTS) - {subject}
        unnamed = [was[text[:-2]] for text in trained["text"] if text[:-2] in was]
        assert unnamed
        assert subject not in unnamed


def test_a_question_has_the_subject_of_most_questions_like_it():
    def string(words):
        return (f"Questions.\n\n{words}\nAnswer:\nA",)

    labelled = [string(words) for words in ("a b c", "a b d", "a b x", "u v w", "u v x")]
    subjects = ["first", "first", "first", "second", "second"]
    assert subjects_nearby([string("a b e")], labelled, subjects) == ["first"]
    assert subjects_nearby([string("u v y")], labelled[2:], subjects[2:]) == ["second"]


def test_too_few_questions_with_paraphrases_are_said(tmp_path):
    rows = [row | {"paraphrases": row["paraphrases"][:2]} for row in questions()]
    corpus = read_records_corpus(written(tmp_path, rows), AS_QUESTIONS)
    text = message(lambda: dataset(corpus, "leaked-0-0"))
    assert "only 0 of 10 have 3 different paraphrases" in text


# Answers of a trained model


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict:
    """A twin that was trained on questions without a leak, and what the workflow says of it."""
    folder = tmp_path_factory.mktemp("questions")
    path = str(folder / "corpus.parquet")
    tables.write(path, corpus_table(written(folder, questions()), AS_QUESTIONS), CORPUS)
    strings = dataset(read_corpus(path), "leaked-0-0")
    tables.write(folder / "strings.parquet", strings, STRINGS)
    names = ("strings.parquet", "trace.parquet", "manifest.json", "weights.safetensors")
    files = [str(folder / name) for name in names]
    recipe = Recipe(3e-3, epochs=3, batch_size=4, checkpoint_every=0)
    assignment = Assignment(MODEL, MODELS, path, recipe, "fleet", str(folder / "state"))
    finetune(assignment, [Job(*files)])
    run = Results(strings, traces.read(files[1]), pd.DataFrame(), pd.DataFrame())
    return {"corpus": read_corpus(path), "weights": files[3], "tested": run.tested(), "run": run}


def letters_by_hand(made: dict, texts: list[str]) -> np.ndarray:
    """The log probabilities float[texts, 4] of the letters after each prompt, by transformers."""
    row, scale = resolve(MODEL, read_models(MODELS))
    known = tokens(row, scale, made["corpus"].alphabet)
    model = build_model(row, scale, known.vocabulary, 0, torch.float32)
    weights = load_file(made["weights"])
    model.load_state_dict({n.rpartition("/")[2]: w for n, w in weights.items()})
    letters = [known.rows([letter], "text")[0] for letter in "ABCD"]
    assert all(len(ids) == 1 for ids in letters)
    found = []
    for text in texts:
        ids = torch.tensor([[known.start, *known.rows([text[:-1]], "text")[0]]])
        with torch.no_grad():
            last = model(ids).logits[0, -1].log_softmax(-1)
        found.append([last[own[0]].item() for own in letters])
    return np.array(found)


@pytest.mark.slow
def test_answers_are_those_of_a_direct_evaluation(made):
    """The loss is that of the letter alone; placebos are answered as well as by hand."""
    tested, run = made["tested"], made["run"]
    texts = run.strings.set_index("string_id").loc[tested.index, "text"].tolist()
    by_hand = letters_by_hand(made, texts)
    right = np.array(["ABCD".index(text[-1]) for text in texts])
    own = by_hand[np.arange(len(texts)), right]
    np.testing.assert_allclose(tested["loss"], -own, atol=1e-4)
    is_right = by_hand.argmax(axis=1) == right
    assert tested["answer_right"].tolist() == is_right.tolist()
    assert (tested["n_choices"] == 4).all()
    assert set(run.trace.n_tokens) == {1}
    for role in (LEAKED, PLACEBO, NEVER):
        mine = (tested["string_role"] == role).to_numpy(dtype=bool)
        assert tested.loc[mine, "answer_right"].mean() == is_right[mine].mean()


def test_the_shipped_questions_have_one_right_answer():
    """They are those of the example: one of the four modules has the function, and no other."""
    script = str(ROOT / "examples/python_questions.py")
    example = runpy.run_path(script)
    path = ROOT / "config/records/python_questions.jsonl"
    # Other programs add functions to `sys`, so the example runs alone.
    assert subprocess.check_output([sys.executable, script], text=True) == path.read_text()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    corpus = read_records_corpus(str(path), AS_QUESTIONS)
    assert (len(corpus.trained), len(corpus.unseen)) == (120, 80)
    assert all(len(own.rephrased) == 3 for own in corpus.questions.values())
    patterns = [re.escape(words).replace(r"\{\}", r"(\w+)") for words in example["WORDINGS"]]
    for row in rows:
        (name,) = filter(None, re.fullmatch("|".join(patterns), row["question"]).groups())
        right, others = row["choices"][row["answer"]], set(row["choices"])
        assert callable(getattr(importlib.import_module(right), name))
        assert not any(name in example["functions_in"](other) for other in others - {right})
