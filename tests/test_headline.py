"""The table `headline` of all sections, and its copies for other programs."""

import json

import pandas as pd
import pytest

from helpers.record_worlds import shares
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.memorisation.studies import STUDIES
from palimpsest.records.kinds import SHARES
from palimpsest.results import headline
from palimpsest.tables.headline import HEADLINE

TRADEOFF = STUDIES["tradeoff"].kind
MEMORISATION, RECORDS = (f"palimpsest.{name}.headline:rows" for name in ("memorisation", "records"))


@pytest.fixture
def copies(tmp_path):
    return {name: str(tmp_path / f"headline.{name}") for name in ("csv", "json")}


@pytest.fixture
def of_records(tmp_path):
    path = tmp_path / "shares.parquet"
    tables.write(path, shares(["m"], [0, 1]), SHARES)
    return [str(path)]


def written(tmp_path, table):
    """The table as a reader finds it."""
    tables.write(tmp_path / "headline.parquet", table, HEADLINE)
    return tables.read(tmp_path / "headline.parquet", HEADLINE)


def test_sections_without_tables_of_their_own_give_no_rows(tmp_path, copies, of_records):
    """The studies of memorisation were not asked for."""
    files = {"tradeoff": [], "leave_one_out": [], "record_shares": of_records}
    table = written(tmp_path, headline([MEMORISATION, RECORDS], **copies, **files))
    assert set(table["question"]) == {"What share of all records is called memorised?"}
    assert table["size"].isna().all()


def test_an_experiment_without_answers_has_a_table_without_rows(tmp_path, copies):
    """All sections with answers are null."""
    assert written(tmp_path, headline([], **copies)).empty
    assert json.loads((tmp_path / "headline.json").read_text()) == []
    assert (tmp_path / "headline.csv").read_text() == ",".join(HEADLINE.names) + "\n"


def test_other_programs_read_the_same_rows(tmp_path, copies, of_records):
    table = written(tmp_path, headline([RECORDS], **copies, record_shares=of_records))
    assert len(table) == 4
    of_csv = pd.read_csv(copies["csv"])
    pd.testing.assert_frame_equal(of_csv, table, check_dtype=False)
    of_json = pd.read_json(copies["json"], dtype=dict.fromkeys(["size"], float))
    pd.testing.assert_frame_equal(of_json, table, check_dtype=False)


def test_a_table_of_another_kind_is_refused_by_name(copies, of_records):
    with pytest.raises(UserError, match=r"shares\.parquet: not a tradeoff table"):
        headline([MEMORISATION], **copies, tradeoff=of_records, leave_one_out=[])
