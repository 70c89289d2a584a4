# Inputs and parameters of figures, claims and the report.
from palimpsest.datasets.kinds import GRAMMAR


def figure_inputs(wildcards):
    """The files from which a figure for a language is drawn, by the name of their kind."""
    with refusing():
        return experiment.figure_inputs(wildcards.figure, wildcards.language)


def manifests_of_runs():
    """The manifests of all single runs or, where there are only replicates, of these."""
    single = trained_files(experiment.single_runs, [paths.MANIFEST])
    return single or trained_files(experiment.replicates, [paths.REPLICATES_MANIFEST])


def manifest_of_every_model():
    """For each model, the manifest of one of its runs or replicates."""
    found = {}
    for runs in experiment.requests:
        pattern = paths.MANIFEST if runs.replicates is None else paths.REPLICATES_MANIFEST
        found.setdefault(runs.model, runs.paths(pattern)[0])
    return list(found.values())


def drawn():
    """All drawings, by their SVG file: the figure's name, the language and the tables it shows."""
    return {
        drawing.files[0]: {
            "name": drawing.figure.name,
            "language": drawing.language,
            "tables": [path for files in drawing.inputs.values() for path in files],
        }
        for drawing in experiment.drawings.values()
    }


def declarations_of_figures():
    """The locations of the titles and captions that the report prints, for a fingerprint."""
    return [figure.declaration for section in experiment.sections for figure in section.figures]


def figure_code(wildcards):
    """A hash of the code that draws a figure, without the titles and captions of all figures."""
    return of_code("make.py", *FIGURES[wildcards.figure].code)
