"""The figure of the study `bits`: bits per string over the epochs, and of the training set."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.figures.model_size import counted, model_shades
from palimpsest.memorisation.studies.bits import KIND

FIGURE = Figure(
    __name__,
    order=130,
    chapter="bits",
    title="Memorised bits",
    caption=(
        "Above, the mean bits of training strings (solid) and unseen ones (dashed), darker "
        "for more strings; below, the total by their number (solid) and minus that of unseen "
        "strings (dash-dotted). See whether the totals still grow: those of a full model "
        "would not."
    ),
    tables=(KIND,),
)
COLOUR = style.MEASURES["bayes"].colour  # bits count from the threshold of `bayes`
GROUPS = {"bits": "train", "bits_unseen": "test"}
TOTALS = {"total": "train", "total_corrected": "threshold"}
SHARES = {"per_parameter": "train", "corrected_per_parameter": "threshold"}
LINEAR = 1.0  # bits on both sides of 0 within which the axis is linear


@style.styled
def bits(study: pd.DataFrame) -> plt.Figure:
    """Bits per string over the epochs; below, bits of the training set against its size.

    Source: arXiv 2505.24832, figure 1, for the totals; the placebo is Palimpsest's own.
    """
    models = study.drop_duplicates("model").set_index("model")["parameters"]
    figure = elements.figure_of(5.6 + 0.14 * (len(models) // 3), "Memorised bits", study)
    above, below = elements.panels_in(figure).subfigures(2, 1, height_ratios=(1.1, 1))
    draw_epochs(above.subplots(), study)
    optimum = study[study["epoch"] == study["optimal_epoch"]]
    last = study[
        study["epoch"] == study.groupby(["model", "size", "seed"])["epoch"].transform("max")
    ]
    total, share = "bits of the training set", "bits per parameter"
    panels = (
        ("optimal learning", optimum, TOTALS, total),
        ("last epoch", last, TOTALS, total),
        ("last epoch, per parameter", last, SHARES, share),
    )
    for axes, (title, rows, columns, unit) in zip(below.subplots(1, 3), panels, strict=True):
        draw_totals(axes, rows, columns, list(models.index))
        axes.set_title(title, weight="bold")
        axes.set_ylabel(unit)
    below.supxlabel("distinct training strings")
    note = f"{elements.spread_note(study)} {elements.error_note(study)}"
    elements.legend(figure, handles(study, models), note)
    return figure


def draw_epochs(axes: plt.Axes, study: pd.DataFrame) -> None:
    axes.axhline(0, **style.BAYES_LINE)
    for size, shade in shades(study).items():
        rows = study[study["size"] == size]
        for column, line in GROUPS.items():
            curve = elements.spread(rows, "epoch", column)
            elements.draw_spread(axes, curve, shade, linestyle=style.LINES[line])
    # An untrained model is hundreds of bits below the language; what is memorised is tens.
    axes.set_yscale("symlog", linthresh=LINEAR)
    elements.plain_numbers(axes.yaxis)
    axes.margins(x=0.02)
    axes.set_xlabel("epoch")
    axes.set_ylabel("bits per string (symmetric\nlogarithmic scale)")


def draw_totals(
    axes: plt.Axes, rows: pd.DataFrame, columns: dict[str, str], models: list[str]
) -> None:
    axes.axhline(0, **style.BAYES_LINE)
    for model in models:
        look = elements.model_marker(model, models, COLOUR)
        for column, line in columns.items():
            points = [
                (runs["n_train"].mean(), *elements.whiskers(runs[column]))
                for _, runs in rows[rows["model"] == model].groupby("size")
            ]
            x, y, reach = zip(*points, strict=True)
            axes.errorbar(
                x, y, yerr=np.concatenate(reach, axis=1), color=COLOUR, linewidth=0.9,
                linestyle=style.LINES[line], elinewidth=0.7, **look,
            )  # fmt: skip
    axes.margins(x=0.12)


def shades(study: pd.DataFrame) -> dict[int, tuple]:
    sizes = sorted(study["size"].unique())
    return dict(zip(sizes, model_shades(len(sizes), "bayes"), strict=True))


def handles(study: pd.DataFrame, models: pd.Series) -> list:
    named = elements.model_handles(list(models.index))
    for handle, parameters in zip(named, models, strict=True):
        handle.set_label(f"{handle.get_label()} ({counted(parameters)} parameters)")
    return [
        *(elements.line_handle(f"{size} training strings", shade)
          for size, shade in shades(study).items()),
        elements.line_handle("training strings; their total", linestyle=style.LINES["train"]),
        elements.line_handle("strings never trained on", linestyle=style.LINES["test"]),
        elements.line_handle(
            "total minus that of strings never trained on", linestyle=style.LINES["threshold"]
        ),
        elements.line_handle("the language", style.BAYES_LINE["color"], linewidth=1.6),
        *named,
    ]  # fmt: skip
