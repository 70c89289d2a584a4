"""Mixed-effects models with random intercepts: linear by REML, logistic by Laplace.

Linear fits are those of `mixedlm`, which is imported inside functions, because it loads slowly.
Logistic fits are our own; `laplace` says why.

Source: LMD3: Language Model Data Density Dependence, appendix A.4 and A.5; Bates et al., Fitting
linear mixed-effects models using lme4 (2015), for both kinds of fits; Kuznetsova et al., lmerTest
package (2017), for Satterthwaite's degrees of freedom.
"""

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.statistics import is_constant, rounding_error

SATTERTHWAITE, WALD = "Satterthwaite t", "Wald z"
# A standard deviation below this share of the residual's (linear), or of 1 (logistic), is 0: as in
# lme4
NO_SPREAD = 1e-4
# If a term separates right from wrong answers, no finite estimate is the most probable one. Then
# its standard error, in log odds per standard deviation of the term, exceeds this.
LARGEST_ERROR = 5.0
# A standard deviation of the residuals below this share of the largest difference from the mean
# outcome is none in a fit by `mixedlm`: where nothing is left of an outcome, it ends at 1e-17 to
# 1e-5.
NO_RESIDUAL = 2e-5
# More steps than any fit of our data took
MOST_STEPS = 500


class Fit(NamedTuple):
    """A fitted regression.

    Attributes
    ----------
    estimates, std_errors : float[1 + terms]
        The intercept comes first. NaN if the model was not fitted.
    df : float[1 + terms]; degrees of freedom by Satterthwaite; NaN in a logistic regression
    p_values : float[1 + terms]; of Satterthwaite's t or Wald's z; NaN if the fit did not converge
    converged, singular : bool
    fitted : float[rows]; expected outcome, with the random intercepts
    spreads : standard deviation of each random intercept
    residual : standard deviation of the residuals; NaN in a logistic regression
    """

    estimates: np.ndarray
    std_errors: np.ndarray
    df: np.ndarray
    p_values: np.ndarray
    converged: bool
    singular: bool
    fitted: np.ndarray
    spreads: dict[str, float]
    residual: float

    @property
    def statistics(self) -> np.ndarray:
        """Estimates in standard errors: t or z."""
        return self.estimates / self.std_errors


def random_intercepts(candidates: Mapping[str, Sequence]) -> dict[str, np.ndarray]:
    """The levels of random intercepts, int[rows], that can be told apart.

    `candidates` are the levels of each intercept by its name. An intercept is left out if it is
    constant, if each row has a level of its own, or if it splits the rows as an earlier intercept
    does: the data could then not separate its variance from the fixed intercept, the residual or
    the earlier intercept.
    """
    kept: dict[str, np.ndarray] = {}
    for name, levels in candidates.items():
        codes, found = pd.factorize(np.asarray(levels))
        is_new = not any(np.array_equal(codes, other) for other in kept.values())
        if 1 < len(found) < len(codes) and is_new:
            kept[name] = codes
    return kept


def can_be_fitted(outcome: np.ndarray, terms: np.ndarray) -> bool:
    """Whether the outcome and all terms vary, no term follows from others, and rows are enough.

    `outcome` is float[rows], `terms` float[rows, terms].
    """
    n_rows, n_terms = terms.shape
    if n_rows < n_terms + 3 or not np.isfinite(terms).all():
        return False
    if is_constant(outcome) or is_constant(terms).any():
        return False
    centred = terms - terms.mean(axis=0)
    return np.linalg.matrix_rank(centred / centred.std(axis=0), tol=1e-8 * n_rows) == n_terms


def fit(
    outcome: np.ndarray,
    terms: np.ndarray,
    intercepts: Mapping[str, np.ndarray],
    is_logistic: bool = False,
    start: Fit | None = None,
) -> Fit:
    """Regress an outcome on terms, with random intercepts.

    Parameters
    ----------
    outcome : float[rows]; for a logistic regression, 0 or 1
    terms : float[rows, terms]; they may be none, for the model of the null hypothesis
    intercepts : dict of int[rows]
        See `random_intercepts`. Without any, a linear regression is ordinary least squares, and a
        logistic one is not fitted.
    start : Fit, optional
        A logistic fit of the same outcome with the same intercepts and other terms. The search for
        the maximum then begins near its end.

    The fit is all NaN and not converged if the model cannot be fitted (see `can_be_fitted`), if the
    search fails, or if the residuals are only rounding (with intercepts, nothing above
    `NO_RESIDUAL`): then there is no residual from which to estimate errors.
    """
    if not can_be_fitted(outcome, terms) or (is_logistic and not intercepts):
        return _unfitted(len(outcome), terms.shape[1])
    if is_logistic:
        return _logistic(outcome, terms, intercepts, start)
    if not intercepts:
        return _unless_exact(_least_squares(outcome, terms), outcome)
    names = [f"x{place}" for place in range(terms.shape[1])]
    frame = pd.DataFrame(dict(zip(names, terms.T, strict=True))).assign(y=outcome)
    for name, codes in intercepts.items():
        frame[name] = pd.Categorical(codes)
    formula = "y ~ " + " + ".join(["1", *names, *(f"(1|{name})" for name in intercepts)])
    # Singular fits and fits without convergence are marked in the result.
    failures = np.linalg.LinAlgError, ValueError, RuntimeError
    with warnings.catch_warnings(), contextlib.suppress(*failures):
        warnings.simplefilter("ignore")
        found = _linear(formula, frame)
        if found.residual > NO_RESIDUAL * np.abs(outcome - outcome.mean()).max():
            return _unless_exact(found, outcome)
    return _unfitted(len(outcome), terms.shape[1])


def _linear(formula: str, frame: pd.DataFrame) -> Fit:
    """A linear fit by REML, with Satterthwaite's t."""
    from mixedlm import lmer
    from mixedlm.inference.ddf import satterthwaite_df
    from mixedlm.models.control import LmerControl
    from scipy.stats import t

    model = lmer(formula, frame, control=LmerControl(maxiter=MOST_STEPS))
    df = satterthwaite_df(model).df
    std_errors = np.sqrt(np.diag(model.vcov()))
    converged = bool(model.converged and np.isfinite(std_errors).all())
    p_values = 2 * t(df).sf(np.abs(model.beta / std_errors))
    theta = np.abs(model.theta)
    names = [structure.grouping_factor for structure in model.matrices.random_structures]
    return Fit(
        np.asarray(model.beta),
        std_errors,
        df,
        p_values if converged else np.full(len(p_values), np.nan),
        converged,
        bool((theta < NO_SPREAD).any()),
        np.asarray(model.fitted()),
        dict(zip(names, theta * model.sigma, strict=True)),
        model.sigma,
    )


def _logistic(
    outcome: np.ndarray, terms: np.ndarray, intercepts: Mapping[str, np.ndarray], start: Fit | None
) -> Fit:
    """A logistic fit by maximum likelihood with the Laplace approximation, with Wald's z."""
    from scipy.stats import norm

    from palimpsest.density.laplace import SMALLEST_START, Laplace, search

    # The search needs terms of about the same size.
    sizes = np.append(1.0, terms.std(axis=0))
    scaled = np.column_stack([np.ones(len(outcome)), terms]) / sizes
    model = Laplace(outcome, scaled, list(intercepts.values()))
    first = np.zeros(model.n + 1 + terms.shape[1])
    first[: model.n] = 1.0
    if start is not None and start.converged:
        first[: model.n] = np.maximum(list(start.spreads.values()), SMALLEST_START)
        first[model.n] = start.estimates[0]
    found, converged = search(model, first, MOST_STEPS)
    theta, estimates, std_errors = found[: model.n], found[model.n :], model.std_errors(found)
    converged &= bool((std_errors < LARGEST_ERROR).all())
    p_values = 2 * norm.sf(np.abs(estimates / std_errors))
    unknown = np.full(len(estimates), np.nan)
    return Fit(
        estimates / sizes,
        std_errors / sizes,
        unknown,
        p_values if converged else unknown,
        converged,
        bool((theta < NO_SPREAD).any()),
        model.right(found),
        dict(zip(intercepts, theta, strict=True)),
        np.nan,
    )


def _least_squares(outcome: np.ndarray, terms: np.ndarray) -> Fit:
    from scipy.stats import t

    design = np.column_stack([np.ones(len(outcome)), terms])
    inverse = np.linalg.inv(design.T @ design)
    estimates = inverse @ design.T @ outcome
    df = len(outcome) - design.shape[1]
    residual = np.sqrt(((outcome - design @ estimates) ** 2).sum() / df)
    std_errors = residual * np.sqrt(np.diag(inverse))
    p_values = 2 * t(df).sf(np.abs(estimates / std_errors))
    all_df = np.full(len(estimates), float(df))
    fitted = design @ estimates
    return Fit(estimates, std_errors, all_df, p_values, True, False, fitted, {}, residual)


def _unless_exact(found: Fit, outcome: np.ndarray) -> Fit:
    if found.residual > rounding_error(np.abs(outcome).max(), len(outcome)):
        return found
    return _unfitted(len(outcome), len(found.estimates) - 1)


def _unfitted(n_rows: int, n_terms: int) -> Fit:
    unknown = np.full(1 + n_terms, np.nan)
    return Fit(
        unknown, unknown, unknown, unknown, False, False, np.full(n_rows, np.nan), {}, np.nan
    )
