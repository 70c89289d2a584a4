# What figures, claims and the report take.


def figure_inputs(wildcards):
    """The files that a figure of a language is drawn from, by the name of their kind."""
    try:
        return experiment.figure_inputs(wildcards.figure, wildcards.language)
    except UserError as error:
        sys.exit(f"error: {error}")


def drawn():
    """What is drawn, by its SVG: the figure's name, the language and the files it is of."""
    return {
        drawing.files[0]: {
            "name": drawing.figure.name,
            "language": drawing.language,
            "tables": [path for files in drawing.inputs.values() for path in files],
        }
        for drawing in experiment.drawings.values()
    }


def figure_code(wildcards):
    """A hash of the code that draws a figure."""
    return of_code(*FIGURES[wildcards.figure].code)
