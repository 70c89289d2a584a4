"""How a job's works are done: by copies of the command, under one lock and one name."""

import os
from argparse import Namespace

import pytest

from palimpsest import launch
from palimpsest.jobs import supervision
from palimpsest.jobs.supervision import OF_MEMORY, supervise
from palimpsest.locks import NoLocks
from palimpsest.training.progress import NOTE


@pytest.fixture
def arguments(tmp_path):
    return Namespace(state=tmp_path, **{**dict.fromkeys(OF_MEMORY, 1), "gpus": 0})


@pytest.fixture
def in_this_process(monkeypatch):
    """Works are done in this process, which gets its environment back after each."""

    def in_child(work):
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", dict(os.environ))
            work()
        return 0

    monkeypatch.setattr(launch, "in_child", in_child)


def test_copies_that_a_launcher_starts_do_the_work_of_their_child(in_this_process, arguments):
    """Each copy runs the whole command again: with several works, not only the last one."""
    done = []

    def work(name):
        def launching(attempts):
            if launch.is_launched():
                done.append(name)
                return
            os.environ[launch.LAUNCHED] = "1"
            for _ in range(2):
                assert supervise(arguments, ["job"], works) == 0

        return launching

    works = [work("first"), work("second")]
    assert supervise(arguments, ["job"], works) == 0
    assert done == ["first", "first", "second", "second"]


def files_of(arguments, names: list[str]) -> tuple[str, str]:
    """The files of a job with attempts and with progress."""
    found = []

    def work(attempts):
        found.append((str(attempts.path), os.environ[NOTE]))

    assert supervise(arguments, names, [work]) == 0
    return found[0]


def test_the_files_of_a_job_are_named_after_all_of_its_results(in_this_process, arguments):
    """The order of the results, and a name that two of them share, change nothing."""
    both = files_of(arguments, ["a", "b"])
    assert both == files_of(arguments, ["b", "a", "b"])
    assert files_of(arguments, ["a"]) != both != files_of(arguments, ["a", "c"])


def test_one_warning_where_the_file_system_has_no_locks(
    in_this_process, arguments, monkeypatch, capsys
):
    def wait_for(path, waiting):
        raise NoLocks(f"{path}: cannot be locked: No locks available")

    monkeypatch.setattr(supervision, "wait_for", wait_for)
    assert supervise(arguments, ["a", "b"], [lambda attempts: None]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"warning: {arguments.state}/locks/a.lock: cannot be locked: No locks available; "
        "make sure that no other job works on these models"
    )
