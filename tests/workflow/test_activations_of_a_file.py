"""The example of images: networks are trained, and their activations are measured and reported."""

import subprocess
import sys

import pandas as pd
import pytest

from helpers.experiments import ROOT

GROUPS = ("coloured-2", "shuffled-2")


@pytest.mark.slow
def test_the_example_of_images_has_a_report_without_any_training_here(project):
    """At a small size: one seed of networks of two layers. Both doses are doses."""
    small = ["--seeds", "1", "--layers", "2", "--width", "24"]
    command = [sys.executable, str(ROOT / "examples/digits.py"), "digits", *small]
    subprocess.run(command, cwd=project.folder, check=True, capture_output=True)
    done = project.snakemake("report", configfiles=("digits/digits.yaml",))
    assert done.returncode == 0, done.stdout
    results = project.folder / "results"
    assert not (results / "runs").exists()
    report = (results / "report.html").read_text()
    for group in GROUPS:
        folder = results / "information/activations" / group
        scores = pd.read_parquet(folder / "scores.parquet")
        wide = scores.pivot(index="model", columns="score", values="value").sort_values("dose")
        assert list(wide["dose"]) == [0, 0.25, 0.5, 0.75, 1]
        accuracy = wide["accuracy"].to_numpy()
        assert accuracy[0] - accuracy[3] > 0.04
        assert accuracy[3] - accuracy[4] > 0.05
        # The paper's direction of mutual information: up with alpha, down with beta
        rows = pd.read_parquet(folder / "associations.parquet").set_index(["score", "other"])
        slope = rows.loc["mutual_information", "dose"]["slope"]
        assert slope > 0.05 if group == "coloured-2" else slope < -0.05
        assert abs(rows.loc["mutual_information_permuted", "dose"]["slope"]) < 0.01
        for figure in ("given_distributions", "given_scores"):
            assert f"{figure}-{group}.svg" in report
        tau = f"{rows.loc['mutual_information', 'accuracy']['tau']:.3g}".replace("-", "−")
        assert f"with the accuracy of the models is {tau} (p =&nbsp;" in report
    assert "Change from<br>dose 0 to 1" in report
