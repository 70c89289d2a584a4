"""A panel from checkpoints through Snakemake: killed at random, at most one is asked again."""

import random
import re
import time

import numpy as np
import yaml

from helpers.projects import wait_until, workers
from helpers.tiny_language_models import write

NOTHING = dict.fromkeys(("exact", "notions", "dilution"))
OTHERS = ("memorisation", "unlearning", "density", "information", "records", "audit")
PANEL = "results/profiles/panels/mine/panel.parquet"
STEPS = (0, 10, 20)


def test_a_killed_panel_goes_on_with_the_checkpoint_that_it_was_at(project):
    """The tables that were there stay; the panel is complete, with three outcomes."""
    folder = project.folder
    for step in STEPS:
        write(folder / f"ck/step{step}", seed=step)
    chance = np.random.default_rng(0)
    np.save(folder / "tokens.npy", chance.integers(0, 100, (60, 17), dtype=np.uint16))
    np.save(folder / "steps.npy", np.array([*np.repeat(range(1, 21), 2), *[-1] * 20]))
    panel = {
        "checkpoints": [f"ck/step{step}" for step in STEPS],
        "tokens": "tokens.npy",
        "steps": "steps.npy",
    }
    block = {"models": [], "panels": {"mine": panel}, **NOTHING}
    text = yaml.safe_dump({"profiles": block, **dict.fromkeys(OTHERS)})
    (folder / "mine.yaml").write_text(text)
    tables = folder / "results/profiles/panels/mine/checkpoints"
    with project.running(PANEL, cores=1, configfiles=("mine.yaml",)) as process:
        wait_until(lambda: any(tables.glob("*.parquet")))
        # The worker that wrote the first table may live on for a moment: killed, it would lose it.
        finished = set(workers(process, "ask_panel.py"))
        wait_until(lambda: set(workers(process, "ask_panel.py")) - finished)
        time.sleep(random.uniform(0, 3))
        for worker in workers(process, "ask_panel.py"):
            worker.kill()
        assert process.wait(300) in (0, 1)
    kept = {table: table.stat().st_mtime_ns for table in tables.glob("*.parquet")}
    assert kept
    done = project.snakemake(PANEL, cores=1, configfiles=("mine.yaml",))
    assert done.returncode == 0, done.stdout
    asked = len(re.findall(r"^(?:local)?rule ask_panel:", done.stdout, re.MULTILINE))
    assert asked == len(STEPS) - len(kept)
    assert all(table.stat().st_mtime_ns == written for table, written in kept.items())
    assert (folder / PANEL).exists()
