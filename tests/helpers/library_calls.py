"""A call of every public function of the library, with arguments that it allows."""

import numpy as np
import pandas as pd

from helpers.tiny_language_models import write
from palimpsest import (
    audit,
    datasets,
    density,
    information,
    languages,
    memorisation,
    profiles,
    records,
    unlearning,
)
from palimpsest.models.checkpoints import opened

CONTACT = "Ann, ann@post.example"


def library_calls(folder):
    """Pairs of a function and its arguments by name. `folder` gets a model and files."""
    chance = np.random.default_rng(0)
    loss = chance.uniform(0.1, 2, (4, 3))
    one, other = chance.normal(size=(2, 64, 4))
    people = languages.load("people")
    rows = pd.DataFrame(
        {
            "id": [f"r{n}" for n in range(40)],
            "checkpoint": 1,
            "loss": chance.uniform(0.5, 2, 40),
            "trained": np.arange(40) < 20,
        }
    )
    is_known = np.arange(40) % 2 == 0
    half_known = rows.assign(loss_without=np.where(is_known, 2.5, np.nan), trained=True)
    rows.to_csv(folder / "losses.csv", index=False)
    mine = records.read_records("config/records/people.jsonl")
    panel = profiles.read_panel("config/panels/example.csv")
    activations = chance.normal(size=(50, 3))
    score, member = chance.normal(size=40), np.arange(40) < 20
    inside = np.arange(16)[:, None] % 2 == np.zeros(5)
    lira = {"loss": chance.uniform(1, 3, (16, 5)), "inside": inside}
    write(folder / "model")
    model, texts = opened(folder / "model"), mine.texts[:4].tolist()
    given = {"texts": texts, "prompts": [0] * 4, "n_prompt": 8, "n_continuation": 8}
    exposed = {"loss": 2.5, "losses_of_others": [4.0, 3.0], "n_values": 1000}
    models = {"unlearned": one, "retrained": other}
    near = {"queries": one, "corpus": other}
    parts = density.Approximation(k=5, m1=20, m2=10)
    return [
        (languages.candidates, {"grammar": people, "field": "PHONE", "n": 5, "seed": 0}),
        (languages.exposure, exposed),
        (languages.field_losses, {"grammar": people, "texts": ["".join(people.sample(1, 0)[0])]}),
        (languages.load, {"name": "L4"}),
        (memorisation.bayes, {"loss": loss, "optimal_loss": loss[0]}),
        (memorisation.contextual, {"loss": loss, "loss_without": loss}),
        (memorisation.counterfactual, {"loss": loss, "loss_without": loss}),
        (memorisation.recollection, {"loss": loss, "threshold": 0.2}),
        (memorisation.lemma_assumption_broken, {"loss": loss, "loss_without": loss}),
        (memorisation.beyond_false_alarms, {"trained": 0.6, "unseen": 0.3}),
        (
            memorisation.loss_of_others,
            {"loss": loss, "optimal": loss[0], "n_tokens": [4, 4, 4], "largest_gap": 2},
        ),
        (
            memorisation.stand_ins,
            {"optimal": [1.0, 2.0], "optimal_unseen": [1.1, 2.2], "n_tokens": [4, 4]},
        ),
        (memorisation.extraction_probability, {"log_probability": -1.0, "samples": 5}),
        (memorisation.memorised_bits, {"nll": [3.0, 8.0], "language_nll": [10.0, 8.0]}),
        (records.answers, {"losses": records.to_losses(rows)}),
        (records.conformal, {"losses": records.to_losses(half_known)}),
        (records.in_windows, {"records": mine, "n_words": 5}),
        (records.measure, {"records": mine, "model": folder / "model"}),
        (records.placebo_p_values, {"distance": [0.1, 0.5], "trained": [True, False]}),
        (records.read_losses, {"path": folder / "losses.csv"}),
        (records.read_records, {"path": "config/records/people.jsonl"}),
        (records.to_records, {"frame": mine.to_frame()}),
        (records.to_losses, {"frame": rows}),
        (profiles.by_time_since_treatment, {"panel": panel, "n": 20}),
        (profiles.difference, {"panel": panel, "n": 20}),
        (profiles.difference_in_differences, {"panel": panel, "n": 20}),
        (profiles.read_panel, {"path": "config/panels/example.csv"}),
        (profiles.to_panel, {"frame": panel.to_frame()}),
        (density.kernel_density, {**near, "bandwidth": 1.0}),
        (density.log_density_of_others, {"points": one, "bandwidth": 1.0}),
        (density.log_kernel_density, {**near, "bandwidth": 1.0}),
        (density.mean_distance, {**near, "k": 3}),
        (density.nearest, {**near, "k": 3}),
        (density.parts_of_density, {**near, "bandwidth": 1.0, "approximation": parts}),
        (information.mutual_information, {"activations": activations}),
        (
            information.mutual_information_of_pairs,
            {"activations": activations, "pairs": information.sampled_pairs(3, 2)},
        ),
        (information.sampled_pairs, {"n_neurons": 5, "most": 3}),
        (information.neuron_entropy, {"activations": activations}),
        (information.trimmed_entropy, {"activations": activations}),
        (information.is_degenerate, {"activations": activations}),
        (unlearning.epsilon, models),
        (unlearning.epsilon_lower_bound, models),
        (unlearning.forgetting_quality, {"epsilons": [1.0, 2.0], "n_models": 64}),
        (unlearning.joint_attack, models),
        (unlearning.logit_scaled_confidence, {"nll": [4.0, 8.0], "n_tokens": 8}),
        (unlearning.permutation_null, {**models, "statistic": lambda x, y: 0.0, "n": 9}),
        (unlearning.pooled_share, {"problems": [(one, one + 1, other + 9)], "n": 50}),
        (audit.attacks, {"texts": texts, "target": audit.passed(model, texts)}),
        (audit.auc, {"score": score, "member": member}),
        (audit.calibrated, lira),
        (audit.continued, {"checkpoint": model, "given": audit.cut(model, **given)}),
        (audit.exposure, exposed),
        (
            audit.extractable,
            {"checkpoint": model, "texts": texts, "prompt": 8, "continuation": 8},
        ),
        (audit.cut, {"checkpoint": model, **given}),
        (audit.free_generations, {"checkpoint": model, "n": 2, "n_tokens": 5}),
        (audit.lira_of_tokens, {**lira, "text": [0, 0, 1, 1, 1], "inside": inside[:, :2]}),
        (audit.lira_offline, lira),
        (audit.lira_online, lira),
        (audit.masked, {"text": CONTACT, "found": audit.secrets([CONTACT])[0]}),
        (audit.one_run_epsilon, {"n_right": 50, "n_guesses": 64}),
        (audit.passed, {"checkpoint": model, "texts": texts}),
        (audit.planted, {"grammar": people, "n_pairs": {1: 2, 8: 1}, "seed": 0}),
        (
            audit.propensity,
            {
                "generated": ["abc", "x"],
                "strings": ["ab", "q"],
                "log_probability": [-2.3, -1.6],
                "group": ["trained", "unseen"],
            },
        ),
        (audit.roc, {"score": score, "member": member}),
        (audit.secrets, {"texts": [CONTACT]}),
        (
            audit.statistics,
            {
                "score": score,
                "member": member,
                "group": np.arange(40),
                "false_positive_rates": [0.05],
            },
        ),
        (audit.tpr_at, {"score": score, "member": member, "fpr": 0.05}),
        (datasets.string_id, {"string": ("a", "b")}),
    ]
