"""Answers that a model gave before: only what is new is asked, of this model alone."""

import copy
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.experiments import message
from helpers.tiny_language_models import write
from palimpsest.audit.continuations import continued, cut
from palimpsest.audit.measuring import passed
from palimpsest.models.answers import Answers
from palimpsest.models.checkpoints import opened

TEXTS = [f"{name} was born in {town}." for name in ("Ann Ek", "Ben") for town in ("Lund", "Oslo")]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return opened(write(tmp_path_factory.mktemp("tiny") / "model"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "answers" / "some.sqlite"


def with_answers(checkpoint, answers):
    return replace(checkpoint, answers=answers.of_model(checkpoint.model))


def read_by(checkpoint, work) -> int:
    """Rows that a model reads during some work."""
    read = []
    hook = checkpoint.model.register_forward_pre_hook(
        lambda _, __, given: read.append(len(given["input_ids"])), with_kwargs=True
    )
    work()
    hook.remove()
    return sum(read)


def test_only_what_is_new_is_asked(checkpoint, file):
    """And all that is found is what the model says without any answers."""
    answers = Answers(file)
    passed(with_answers(checkpoint, answers), TEXTS[:2])
    answers.close()
    kept = with_answers(checkpoint, Answers(file))
    found = []
    assert read_by(checkpoint, lambda: found.append(passed(kept, TEXTS))) == 2
    assert read_by(checkpoint, lambda: found.append(passed(kept, TEXTS[::-1]))) == 0
    for one, texts in zip(found, (TEXTS, TEXTS[::-1]), strict=True):
        for name, values in passed(checkpoint, texts).of_tokens.items():
            np.testing.assert_allclose(getattr(one, name), values, atol=1e-5, err_msg=name)


def test_greedy_decoding_is_asked_once(checkpoint, file):
    kept = with_answers(checkpoint, Answers(file))
    given = cut(checkpoint, TEXTS, [0] * 4, 4, 3)
    found = [continued(kept, given), continued(checkpoint, given)]
    assert read_by(checkpoint, lambda: found.append(continued(kept, given))) == 0
    for one in (found[0], found[2]):
        assert one.generated == found[1].generated
        np.testing.assert_array_equal(one.n_generated, found[1].n_generated)
    longer = cut(checkpoint, TEXTS, [0] * 4, 3, 4)
    assert read_by(checkpoint, lambda: continued(kept, longer)), "another cut is another question"


def test_a_prompt_is_another_question(checkpoint, file):
    kept = with_answers(checkpoint, Answers(file))
    passed(kept, TEXTS)
    assert read_by(checkpoint, lambda: passed(kept, TEXTS, [4] * 4)) == 4


def test_what_was_said_before_a_stop_is_kept(checkpoint, file):
    kept = with_answers(checkpoint, Answers(file))
    read = []

    def stopping(_, __, given):
        read.append(given["input_ids"])
        if len(read) == 3:
            raise KeyboardInterrupt

    hook = checkpoint.model.register_forward_pre_hook(stopping, with_kwargs=True)
    with pytest.raises(KeyboardInterrupt):
        passed(kept, TEXTS, batch_size=1)
    hook.remove()
    again = with_answers(checkpoint, Answers(file))
    assert read_by(checkpoint, lambda: passed(again, TEXTS, batch_size=1)) == 2


def test_another_model_gives_its_own_answers(checkpoint, file):
    """Even if one weight differs in its last bit."""
    answers = Answers(file)
    passed(with_answers(checkpoint, answers), TEXTS)
    other = replace(checkpoint, model=copy.deepcopy(checkpoint.model))
    assert read_by(other, lambda: passed(with_answers(other, answers), TEXTS)) == 0
    with torch.no_grad():
        weight = next(other.model.parameters())
        weight.view(-1)[0] = torch.nextafter(weight.view(-1)[0], torch.tensor(9.0))
    assert read_by(other, lambda: passed(with_answers(other, answers), TEXTS)) == 4


def test_what_nobody_asked_for_is_removed(checkpoint, file):
    for texts in (TEXTS, TEXTS[:1]):
        answers = Answers(file)
        passed(with_answers(checkpoint, answers), texts)
        answers.close()
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT COUNT(*) FROM answers").fetchone() == (1,)


def test_a_broken_file_is_made_anew(checkpoint, file, caplog):
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)
    kept = with_answers(checkpoint, Answers(file))
    assert read_by(checkpoint, lambda: passed(kept, TEXTS)) == 4
    assert f"{file}: is broken" in caplog.text


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "some.sqlite").mkdir()
    assert "make its folder writable" in message(lambda: Answers(tmp_path / "some.sqlite"))
