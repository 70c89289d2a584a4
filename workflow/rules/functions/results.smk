# What figures, claims and the report take.


def figure_inputs(wildcards):
    """The files that a figure of a language is drawn from, by the name of their kind."""
    try:
        return experiment.figure_inputs(wildcards.figure, wildcards.language)
    except UserError as error:
        sys.exit(f"error: {error}")


def figure_code(wildcards):
    """A hash of the code that draws a figure, and of its tables' kinds."""
    return of_code(*FIGURES[wildcards.figure].code)
