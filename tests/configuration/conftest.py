"""Configuration files that a test writes, to override the default configuration."""

import pytest

from helpers.experiments import ROOT


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def mine(tmp_path):
    """A function that writes a file to lay over the default configuration, and gives its path."""

    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write
