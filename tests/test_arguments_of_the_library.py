"""Every public function names what is wrong with an argument: a table, a list, a path, a shape."""

import inspect
import traceback
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import message
from helpers.library_calls import library_calls
from palimpsest import audit, datasets, languages, records, results
from palimpsest.arguments import Names, Numbers, Texts, Truths, Wholes, takes
from palimpsest.errors import UserError
from palimpsest.records.figures.record_shares import record_shares
from test_library_page import PUBLIC

WRONG = {
    "a table": pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}),
    "a list": ["x", None, 3],
    "a path": "some/file.csv",
    "a shape": np.zeros((2, 3, 4)),
    "a length": np.zeros(1),
    "nothing": None,
}
# Functions of the workflow, whose tables are checked when they are read
OF_TABLES = {"memorisation_tables", "target_tables", "leave_one_out_tables", "build"}
OF_TABLES |= {"target_strings"}
NEVER = {"a table", "a list", "nothing"}  # no argument may be one of these
# A path may be a name on the hub, which is asked; names of columns are a string, too.
OTHERWISE = {"measure": {"model"}, "string_id": {"string"}}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return library_calls(tmp_path_factory.mktemp("calls"))


def test_every_public_function_is_called(calls):
    called = {function.__name__ for function, _ in calls}
    for name in PUBLIC:
        package = import_module(f"palimpsest.{name}")
        public = {one for one in package.__all__ if inspect.isfunction(getattr(package, one))}
        assert public - OF_TABLES <= called


def refusal(function, arguments):
    """The error of a call, which is one of this library; None if the call succeeds."""
    try:
        function(**arguments)
    except (UserError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return error if "/palimpsest/" in last.filename else None
    return None


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_is_named_in_one_line(calls):
    n_refused = 0
    for function, right in calls:
        function(**right)
        for name in right.keys() - OTHERWISE.get(function.__name__, set()):
            default = inspect.signature(function).parameters[name].default
            for what, value in WRONG.items():
                if value is default:
                    continue
                said = str(refusal(function, {**right, name: value}) or "")
                place = f"{function.__name__}({name}={what}): {said}"
                assert said or what not in NEVER, place
                # A reader names the file or the column, and not the argument.
                assert not said or name in said or "some/file.csv" in said or "column" in said, (
                    place
                )
                assert "\n" not in said, place
                n_refused += bool(said)
    assert n_refused > 500


METHODS = {
    "path": languages.Grammar.from_file,
    "text": languages.Grammar.from_string,
    "strings:": languages.load("L1").log_probability,
    "strings": languages.load("L1").log_prefix_probability,
    "name": lambda name: results.draw(name, "L3"),
    "record_shares": record_shares,
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("wrong", ["a table", "a list", "a shape", "nothing"])
def test_methods_and_figures_name_what_is_wrong_as_well(name, wrong):
    assert name in message(lambda: METHODS[name](WRONG[wrong]))


def test_a_figure_names_the_column_that_its_table_lacks():
    table = pd.DataFrame({"model": ["m"], "measure": ["contextual"]})
    said = "record_shares: its table has no column 'language'; a table `record_shares` has the"
    assert message(lambda: record_shares(table)).startswith(said)


def test_the_message_says_what_is_allowed_and_how_to_come_by_it():
    with pytest.raises(UserError) as error:
        records.answers(WRONG["a table"])
    assert str(error.value) == (
        "losses: is of the class DataFrame and the shape [2, 2] and must be of the class Losses: "
        "what records.to_losses(frame) or records.read_losses(path) returns"
    )
    with pytest.raises(UserError, match="checkpoint: is 'my-model/' and must be of the class Ch"):
        audit.passed("my-model/", ["a"])
    with pytest.raises(TypeError, match=r"string: is \[1\] and must be a text or a tuple of texts"):
        datasets.string_id([1])


@takes(score=Numbers("texts"), member=Truths("texts"), group=Names("texts"), place=Wholes())
def found(score, member, group=None, place=0):
    return score, member, group, place


def test_numbers_and_truths_become_arrays():
    score, member, group, place = found([1, 2.5], [1, 0], group=["a", "b"], place=[1.0])
    assert score.dtype == float
    assert member.tolist() == [True, False]
    assert group.tolist() == ["a", "b"]
    assert place.dtype == int
    assert found(np.float32([1]), [True])[0].dtype == np.float32
    assert found([1.0], [True]) == ([1.0], [True], None, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1, 2], [True]), "member: has 1 texts, and score has 2; give the same texts in both"),
        (([1], [True], ["a", "b"]), "group: has 2 texts, and score has 1; give the same texts"),
        (([1], [2]), r"member: is of the class list and must be an array \[texts\] of True and F"),
        (([1], [True], None, 1.5), "place: is 1.5 and must be whole numbers"),
        (([[1]], [True]), r"score: is of the class list and must be an array \[texts\] of num"),
    ],
)
def test_arrays_of_another_shape_or_kind_are_refused(arguments, said):
    with pytest.raises(UserError, match=said):
        found(*arguments)


def test_a_missing_argument_is_pythons_own_error():
    with pytest.raises(TypeError, match="missing a required argument: 'member'"):
        found([1])


def test_one_text_is_no_list_of_texts():
    for value in ("a text", {"a": 1}, [1], WRONG["a table"], 3):
        with pytest.raises(UserError, match="texts: is"):
            audit.secrets(value)
    assert Texts().check(pd.Series(["a", "b"])) == ["a", "b"]
