"""Configuration files as they are written: a broken one is named, with its line."""

from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from helpers.experiments import message
from palimpsest.configuration.given_files import refuse_broken_files
from palimpsest.configuration.sources import of_command_line
from palimpsest.configuration.yaml_files import check_file, check_values
from palimpsest.errors import UserError

FILES = {
    # what is wrong: (content, message after the file's name)
    "a key twice": ("seeds: [1]\nsizes: [2]\nseeds: [3]\n", ":3: the key 'seeds' is there"),
    "a key twice in a block": ("training:\n  epochs: 1\n  epochs: 2\n", ":3: the key 'epochs'"),
    "not closed": ("models: [a,\n", ":2: "),
    "tabs": ("training:\n\tepochs: 1\n", ":2: found character '\\t'"),
    "a tag that runs code": ("a: !!python/object/apply:os.getcwd []\n", ":1: could not determine"),
    "a list": ("- a\n", ": must hold keys and their values"),
    "empty": ("", ": must hold keys and their values"),
    "bytes": (b"\xff\xfe\x00", ": is not text in YAML: "),
    "too deep": ("a: " + "[" * 2000, ": is not text in YAML: "),
}


@pytest.mark.parametrize("what", FILES)
def test_a_broken_file_is_named_with_its_line(tmp_path, monkeypatch, what):
    """Snakemake would refuse these files without naming them, or read something else."""
    monkeypatch.chdir(tmp_path)
    content, start = FILES[what]
    Path("mine.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message(lambda: check_file("mine.yaml")).startswith(f"mine.yaml{start}")


def test_a_list_as_a_key_is_refused_with_its_line(tmp_path, monkeypatch):
    """YAML allows it, and no configuration has one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("seeds: [0]\n? [1, 2]\n: 3\n")
    assert message(lambda: check_file("mine.yaml")).startswith("mine.yaml:2: ")


def test_a_block_that_is_used_again_is_no_key_twice(tmp_path):
    """The same key in two blocks, a block used by name, and one laid over another, are all fine."""
    path = tmp_path / "mine.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {x: 3}\nc: *a\nd: {<<: *a, x: 4}\n")
    check_file(path)


@pytest.mark.parametrize("value", [" ", "' '", "# nothing"])
def test_a_blank_value_on_the_command_line_is_refused(value):
    """Snakemake's own answer is a traceback."""
    with pytest.raises(SystemExit) as refused:
        refuse_broken_files(["--cores", "1", "--config", "seeds=[1]", f"models={value}"])
    said = value.strip("'")
    expected = f"error: --config: models: {said!r} is no value; give one, or drop it"
    assert str(refused.value) == expected
    refuse_broken_files(["--config", "title=", "unlearning=null", "seeds=[1]", "-n"])


# Values that YAML reads as something else

CHANGED = {
    "010": "the number 8; write 8",
    "-010": "the number -8; write -8",
    "007": "the number 7; write 7",
    "0x1F": "the number 31; write 31",
    "0b11": "the number 3; write 3",
    "1_000": "the number 1000; write 1000",
    "1:30": "the number 90; write 90",
    "1:30.5": "the number 90.5; write 90.5",
    "01.5": "the number 1.5; write 1.5",
    "yes": "true; write true",
    "No": "false; write false",
    "on": "true; write true",
    "OFF": "false; write false",
    "NULL": "null, which is nothing; write null",
    "~": "null, which is nothing; write null",
    "2020-01-01": "a date; write",
    "2020-13-45": "a date; write",
    "2001-12-14t21:59:43.10-05:00": "a date; write",
}


@pytest.mark.parametrize("written", CHANGED)
def test_a_value_that_yaml_changes_is_refused_with_both_readings(tmp_path, written):
    """As a value, in a list and as a key; in quotes it is the text that it looks like."""
    path = tmp_path / "mine.yaml"
    for text, key in (
        (f"a: 1\nseeds: {written}\n", "seeds: "),
        (f"a: 1\nb: {{c: [0, {written}]}}\n", "b/c[1]: "),
        (f"a: 1\n? {written}\n: 2\n", ""),
    ):
        path.write_text(text)
        said = message(lambda: check_file(path)).split("mine.yaml", 1)[1]
        assert said.startswith(f":2: {key}{written} is read as {CHANGED[written]}"), said
        assert said.endswith(f"{written!r} with quotes for the text")
        path.write_text(text.replace(written, f"'{written}'"))
        check_file(path)


@given(st.text("0123456789_.:-+exobaftNYnulsTrO~", min_size=1, max_size=9))
def test_an_accepted_value_is_what_it_looks_like(written):
    """A number is its decimal digits, a truth value and nothing are called so, the rest is text."""
    try:
        check_values(f"- {written}", "here")
        (value,) = yaml.safe_load(f"- {written}")
    except (UserError, yaml.YAMLError):
        return
    if isinstance(value, bool) or value is None:
        assert written.lower() in ("true", "false", "null")
    elif isinstance(value, int | float):
        number = Decimal(written.replace(".nan", "nan").replace(".inf", "inf").replace("_", "?"))
        assert float(number) == value or value != value
        assert not written.lstrip("+-").startswith("00")
    elif isinstance(value, str):
        assert value == written


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["seeds=[010]"], "seeds: [0]: 010 is read as the number 8; write 8 or 10, or '010' with"),
        (["title=1:30"], "title: 1:30 is read as the number 90"),
        (["save_weights=yes"], "save_weights: yes is read as true"),
        (
            ["recipes={default: {epochs: 1, epochs: 2}}"],
            "recipes: the key 'epochs' is there a second time",
        ),
        (["seeds=[1]", "sizes=[8]", "seeds=[2]"], "seeds: is given 2 times; give it once"),
    ],
)
def test_the_command_line_is_read_as_carefully(pairs, said):
    with pytest.raises(SystemExit) as refused:
        refuse_broken_files(["--cores", "1", "--config", *pairs])
    assert str(refused.value).startswith(f"error: --config: {said}")


@pytest.mark.parametrize(
    ("key", "kind"),
    [("1", "a number"), ("1.5", "a number"), ("true", "true or false"), ("null", "nothing")],
)
@pytest.mark.parametrize(
    ("text", "block"),
    [("{}: 1", ""), ("profiles: {{panels: {{{}: mine.csv}}}}", "profiles/panels: ")],
)
def test_a_key_that_is_no_text_is_refused(tmp_path, key, kind, text, block):
    """Such as the number of a panel; with quotes, it is a name."""
    said = f"the key {key} is read as {kind}, and keys are text; write '{key}' with quotes"
    path = tmp_path / "a.yaml"
    path.write_text(text.format(key))
    assert f"a.yaml:1: {block}{said}" in message(lambda: check_file(path))
    with pytest.raises(SystemExit) as refused:
        refuse_broken_files(["--cores", "1", "--config", f"a={{{key}: 1}}"])
    assert said in str(refused.value)
    path.write_text(text.format(f"'{key}'"))
    check_file(path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a: &a {b: *a}", "a/b"),
        ("a: &a [[1], [*a]]", "a[1][0]"),
        ("a: 1\nb: &b {c: [*b]}", "b/c[0]"),
    ],
)
def test_a_value_that_is_a_part_of_itself_is_refused(tmp_path, text, key):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    line = text.count("\n") + 1
    said = message(lambda: check_file(path))
    assert said.endswith(
        f"mine.yaml:{line}: {key}: a value is a part of itself; write it out, without an alias"
    )
    path.write_text("a: &a [1]\nb: [*a, *a]")
    check_file(path)


@pytest.mark.parametrize(
    ("written", "read"), [("!!int '010'", 8), ('!!int "010"', 8), ("1.0e-400", 0), ("-2.5e-999", 0)]
)
def test_a_number_that_yaml_would_change_is_refused_in_any_form(tmp_path, written, read):
    path = tmp_path / "mine.yaml"
    path.write_text(f"a: [{written}]")
    assert f"is read as the number {read}" in message(lambda: check_file(path))
    for same in ("!!str 010", "'010'", "0.0", "0e-999", "1.0e-300"):
        path.write_text(f"a: [{same}]")
        check_file(path)


def test_a_value_inside_of_the_command_line_is_refused_without_the_profile():
    said = message(lambda: of_command_line(["recipes={default: {epochs: 1_000}}"]))
    assert said.startswith("--config: recipes: default/epochs: 1_000 is read as the number 1000")


def test_blocks_without_end_do_not_end_the_process(tmp_path):
    """The fast reader of YAML crashes on them."""
    path = tmp_path / "deep.yaml"
    path.write_text("a: " + "[" * 100_000 + "]" * 100_000)
    assert "is not text in YAML: it has blocks inside of too many" in message(
        lambda: check_file(path)
    )
