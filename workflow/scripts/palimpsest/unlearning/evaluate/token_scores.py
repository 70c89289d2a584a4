"""Scores of strings that need every token of a model's predictions, which no trace keeps."""

from typing import NamedTuple

import torch

from palimpsest.models.trained import n_last_right
from palimpsest.statistics import rounding_error
from palimpsest.training.batches import IGNORED

LEAST_PROBABLE = 5  # one in five tokens, the 20 % of the papers
# Numbers in float64 of one chunk: 32 MB. A chunk has at least one token.
CHUNK = 2**22


class TokenScores(NamedTuple):
    """Scores of B strings under M models: float64[M, B], float64[M, B] and int64[M, B]."""

    min_k: torch.Tensor
    min_k_plus: torch.Tensor
    n_last_correct: torch.Tensor


@torch.no_grad()
def token_scores(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> TokenScores:
    """Min-K% Prob, Min-K%++ and the number of right tokens at the end of every string.

    min_k : mean log probability, in nats, of the 20 % least probable tokens of the string. For n
        tokens, these are n / 5 tokens, rounded down, but at least one.
    min_k_plus : the same mean of standardised log probabilities. A token's log probability is
        standardised by the mean and the standard deviation of log p(v) over all tokens v, drawn
        from the model's own prediction p at this position. It is 0 where the standard deviation
        is 0, that is, where the tokens that can follow are equally probable.
    n_last_correct : number of tokens at the end of the string whose most probable predictions are
        all right, each given the true tokens before. For example, it is 2 if the last two tokens
        are right and the third-last is wrong.

    All three are 0 for a string without tokens.

    Parameters
    ----------
    logits_MBTV : float[M, B, T, V]
        Of the next token at every position. A logit may be -inf (a token that cannot follow).
    targets_MBT : int[M, B, T]
        True tokens; IGNORED (-100) where there is none.

    Source: Shi et al., Detecting pretraining data from large language models (ICLR 2024), section
    3, with K = 20; Zhang et al., Min-K%++ (ICLR 2025), section 4; Carlini et al., Extracting
    training data from large language models (2021), for the extraction strength.
    """
    predicted_MBT = targets_MBT != IGNORED
    shape = targets_MBT.shape
    log_p_MBT = torch.zeros(shape, dtype=torch.float64, device=logits_MBTV.device)
    standardised_MBT = torch.zeros_like(log_p_MBT)
    logits_NV, targets_N = logits_MBTV[predicted_MBT], targets_MBT[predicted_MBT]
    size = max(1, CHUNK // logits_MBTV.shape[-1])
    chunks = [
        _of_tokens(*pair) for pair in zip(logits_NV.split(size), targets_N.split(size), strict=True)
    ]
    if len(targets_N):
        of_tokens = [torch.cat(parts) for parts in zip(*chunks, strict=True)]
        log_p_MBT[predicted_MBT], standardised_MBT[predicted_MBT] = of_tokens
    return TokenScores(
        _mean_of_least(log_p_MBT, predicted_MBT),
        _mean_of_least(standardised_MBT, predicted_MBT),
        n_last_right(logits_MBTV, targets_MBT),
    )


def _of_tokens(
    logits_NV: torch.Tensor, targets_N: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log probability and its standardised value, float64[N]."""
    log_p_NV = logits_NV.double().log_softmax(-1)
    p_NV = log_p_NV.exp()
    true_N = log_p_NV.gather(-1, targets_N[:, None])[:, 0]
    # A token that cannot follow adds nothing to a mean over the prediction.
    log_p_NV = log_p_NV.masked_fill(p_NV == 0, 0)
    mean_N = (p_NV * log_p_NV).sum(-1)
    spread_N = (p_NV * (log_p_NV - mean_N[:, None]).square()).sum(-1).sqrt()
    # All tokens of an even prediction are equally probable, and what is left is rounding.
    rounding = rounding_error(mean_N.abs().cpu().numpy(), logits_NV.shape[-1])
    varies_N = spread_N > torch.from_numpy(rounding).to(spread_N.device)
    standardised_N = torch.where(varies_N, (true_N - mean_N) / spread_N, 0.0)
    return true_N, standardised_N


def _mean_of_least(values_MBT: torch.Tensor, predicted_MBT: torch.Tensor) -> torch.Tensor:
    """Mean float64[M, B] of the smallest 20 % of every string's values; 0 without tokens."""
    n_MB = predicted_MBT.sum(-1)
    k_MB = (n_MB // LEAST_PROBABLE).clamp(min=1)
    rising_MBT = values_MBT.masked_fill(~predicted_MBT, torch.inf).sort(-1).values
    place_T = torch.arange(values_MBT.shape[-1], device=values_MBT.device)
    taken_MBT = place_T < k_MB[..., None]
    sum_MB = rising_MBT.masked_fill(~taken_MBT, 0).sum(-1)
    return torch.where(n_MB > 0, sum_MB / k_MB, 0.0)
