"""A wrong configuration is refused in one line before any job starts, and makes no file."""

from pathlib import Path

import pytest

from helpers.experiments import DEFAULT, SCHEMAS, configuration, experiment, laid_over, message
from palimpsest.configuration import checks
from palimpsest.configuration.sources import Sources
from palimpsest.experiment import schema_of
from palimpsest.memorisation.studies import STUDIES
from palimpsest.sections import SECTIONS
from palimpsest.unlearning.run.jobs import jobs_of

LANGUAGES = "L1, L2, L3, L3-short, L4, L4-skewed, L5, L6, L7, L8, biographies, parcels, people"

WRONG = {
    # what is wrong: (text laid over the default, the message after the file's name)
    "an unknown method": (
        "unlearning: {methods: [finetune, scrubb]}",
        "unlearning/methods[1]: unknown method 'scrubb'; known: ",
        "(did you mean 'scrub'?)",
        "Add it to unlearning/own_methods, or to config/unlearning.yaml",
    ),
    "an end as a method": (
        "unlearning: {methods: [none, finetune]}",
        "unlearning/methods[0]: 'none' is always there; leave it out",
    ),
    "a search on the problems that are evaluated": (
        "unlearning: {search: {seeds: [100, 1]}}",
        "unlearning/search/seeds: seed 1 of L3-short is in the evaluation, too, and a method must "
        "not be tuned on the problems that it is judged on; choose another seed",
    ),
    "a search with too many points for a command": (
        "unlearning: {search: {settings: 64}}",
        "unlearning/search/settings: 64 points of every method are ",
        " bytes in a command, and Linux allows 120,000; lower it",
    ),
    "a search in an unknown language": (
        "unlearning: {search: {languages: [L99]}}",
        "unlearning/search/languages[0]: ",
        "'L99'",
    ),
    "a problem twice": (
        "unlearning: {seeds: [1, 1]}",
        "unlearning/seeds: ",
    ),
    "a search with one model": (
        "unlearning: {search: {n: 1}}",
        "unlearning/search/n: 1 is not allowed; must be a whole number from 2 to 4096",
    ),
    "relearning without a step": (
        "unlearning: {relearn: {steps: 0}}",
        "unlearning/relearn/steps: 0 is not allowed; must be a whole number from 1 to 100000",
    ),
    "a method of one's own that is wrong": (
        "unlearning: {own_methods: {mine: {phases: [{repair: finetune, share: 2, rate: 1}]}}}",
        "unlearning/own_methods: mine: ",
    ),
    "a method of one's own with the name of other models": (
        "unlearning: {own_methods: {retrained: {phases: [{repair: finetune, share: 1, rate: 1}]}}}",
        "unlearning/own_methods/retrained: is the name of other models in the tables; give the",
    ),
    "a method of one's own with a name of the table": (
        "unlearning: {own_methods: {npo: {phases: [{repair: finetune, share: 1, rate: 1}]}}}",
        "unlearning/own_methods/npo: config/unlearning.yaml has a method of this name; choose",
    ),
    "the number of GPUs": (
        "hardware: {n_gpus: 8}",
        "hardware: unknown key 'n_gpus'; known: gpu_memory_gb, ",
        "seeds_per_job; the number of GPUs, for the plan, is hardware/gpus; Snakemake uses",
    ),
    "a learning rate": (
        "recipes: {default: {learning_rate: 0.001}}",
        "recipes/default: unknown key 'learning_rate'; known: epochs, ",
        "; learning rates are in the table of models (models_table)",
    ),
    "an octal number for a count": (
        "unlearning: {n: 0o10}",
        "unlearning/n: '0o10' is not allowed; must be a whole number from 4 to 1000000 "
        "(YAML reads it as text; write 8)",
    ),
    "a number in place of a block by size": (
        "recipes: {default: {epochs: 1e2}}",
        "recipes/default/epochs: '1e2' is not allowed; must be a whole number from 1 to 100000",
        "(YAML reads it as text; write 100)",
    ),
    "a number for a name": (
        "languages: [+10]",
        "languages[0]: 10 is not allowed; must be a text "
        "(YAML reads a name without letters as a number; write it with quotes)",
    ),
    "a pool that is too small": (
        "unlearning: {pool: 16, setups: [bootstrap]}",
        "unlearning/pool: 16 models are fewer than unlearning/n, which is 32",
    ),
    "more folders than models": (
        "unlearning: {save_models: 33}",
        "unlearning/save_models: 33 models are more than unlearning/n, which is 32",
    ),
    "weights in an unknown format": (
        "save_weights: gguf",
        "save_weights: 'gguf' is not allowed; must be false, true or huggingface",
    ),
    "an unknown tracker": (
        "trackers: [mlflow]",
        "trackers[0]: 'mlflow' is not allowed; must be one of tensorboard, wandb",
    ),
    "a share of nothing": (
        "unlearning: {share: 0.001}",
        "unlearning/share: 0.001 of 64 strings is less than one string; raise it to 0.016 or more",
    ),
    "a share of everything": (
        "unlearning: {share: 1}",
        "unlearning/share: 1 is not allowed; must be a number above 0 below 1",
    ),
    "a forget set that is not there": (
        "unlearning: {forget: none.txt}",
        "unlearning/forget: no such file: none.txt; give a text file with one string per line, or "
        "drawn",
    ),
    "a method table that is not there": (
        "unlearning: {table: none.yaml}",
        "unlearning/table: no such file: none.yaml",
    ),
    "an unknown set-up": (
        "unlearning: {setups: [ful]}",
        "unlearning/setups[0]: 'ful' is not allowed; must be one of full, reuse-n-n, reuse-n-1, "
        "bootstrap (did you mean 'full'?)",
    ),
    "text for a number": (
        "recipes: {default: {epochs: fifty}}",
        "recipes/default/epochs: 'fifty' is not allowed; must be a whole number from 1 to 100000",
    ),
    "epochs by size, as in earlier versions": (
        "recipes: {default: {epochs: {n64: 5, other: 10}}}",
        "recipes/default/epochs: {'n64': 5, 'other': 10} is not allowed; must be a whole number "
        "from 1 to 100000",
    ),
    "the block of earlier versions": (
        "training: {epochs: 5}",
        "unknown key 'training'; known: title, ",
        "; how models are trained is in the block recipes; write recipes: {default: {epochs: 50}}",
    ),
    "an unknown recipe": (
        "density: {leakage: {recipe: leakige}}",
        "density/leakage/recipe: unknown recipe 'leakige'; known: default, short, leakage, "
        "forgetting, shortcuts (did you mean 'leakage'?). Define it in the block recipes",
    ),
    "a recipe with the name of the grid's": (
        "recipes: {grid: {epochs: 5}}",
        "recipes: 'grid' is not allowed; must be a name of letters, digits, dots, hyphens "
        "and underscores, and not grid",
    ),
    "the grid's recipe where there is none": (
        "unlearning: {recipe: grid}",
        "unlearning/recipe: 'grid' is not allowed; must be a name in recipes",
    ),
    "innocent models that are trained as the others are": (
        "recipes: {small: {evaluate_every: 5}}\nunlearning: {innocent_recipe: small}",
        "unlearning/innocent_recipe: small has the values of unlearning/recipe, which is ",
    ),
    "YAML reads 3e-3 as text": (
        "recipes: {default: {weight_decay: 3e-3}}",
        "recipes/default/weight_decay: '3e-3' is not allowed; must be a number from 0 to 1 "
        "(YAML reads it as text; write 0.003)",
    ),
    "quoted number": (
        "recipes: {default: {batch_size: '8'}}",
        "recipes/default/batch_size: '8' is not allowed; must be a whole number from 1 to 65536",
    ),
    "float for an integer": (
        "recipes: {default: {epochs: 2.5}}",
        "recipes/default/epochs: 2.5 is not allowed; must be a whole number from 1 to 100000",
    ),
    "boolean for an integer": (
        "recipes: {default: {epochs: true}}",
        "recipes/default/epochs: true is not allowed; must be a whole number from 1 to 100000",
    ),
    "integer for a boolean": (
        "datasets: {predict_end: 1}",
        "datasets/predict_end: 1 is not allowed; must be true or false",
    ),
    "null": (
        "recipes: {default: {epochs: }}",
        "recipes/default/epochs: null is not allowed; must be a whole number from 1 to 100000",
    ),
    "number for a block": (
        "recipes: {default: 7}",
        "recipes/default: 7 is not allowed; must be a block of keys",
    ),
    "nothing for a block": (
        "datasets:",
        "datasets: null is not allowed; must be a block of keys",
    ),
    "text for a list": (
        "models: pythia-1b-twin",
        "models: 'pythia-1b-twin' is not allowed; must be a list of at least 1, each a text",
    ),
    "block for a list": ("seeds: {a: 1}", "seeds: {'a': 1} is not allowed; must be a list"),
    "zero epochs": (
        "recipes: {default: {epochs: 0}}",
        "recipes/default/epochs: 0 is not allowed; must be a whole",
    ),
    "an engine that is none": (
        "engine: {twin: fleets}",
        "engine/twin: 'fleets' is not allowed; must be one of fleet, deepspeed "
        "(did you mean 'fleet'?)",
    ),
    "a fleet of full models": (
        "engine: {pythia-1b: fleet}",
        "engine/pythia-1b: fleet trains twins only; set deepspeed, or name the twin pythia-1b-twin",
    ),
    "an engine for a model that is none": (
        "engine: {pythia-1-twin: fleet}",
        "engine/pythia-1-twin: unknown model 'pythia-1-twin'",
    ),
    "a full model without every string": (
        "memorisation: {studies: {exact: {models: [pythia-1b]}}}",
        "memorisation/studies/exact/models[0]: 'pythia-1b' would be trained once per training ",
        "string, which is out of reach for a full model; name its twin: pythia-1b-twin",
    ),
    "huge size": (
        "sizes: [64, 100000000000]",
        "sizes[1]: 100000000000 is not allowed; must be a whole number from 1 to 1000000",
    ),
    "zero size": ("sizes: [0]", "sizes[0]: 0 is not allowed; must be a whole number from 1"),
    "negative seed": ("seeds: [-1]", "seeds[0]: -1 is not allowed; must be a whole number from 0"),
    "seed beyond 32 bits": (
        "seeds: [4294967296]",
        "seeds[0]: 4294967296 is not allowed; must be a whole number from 0 to 4294967295",
    ),
    "not a number": (
        "recipes: {default: {gradient_clipping: .nan}}",
        "recipes/default/gradient_clipping: nan is not a finite number",
    ),
    "infinite": (
        "memorisation: {loss_threshold: .inf}",
        "memorisation/loss_threshold: inf is not a finite number",
    ),
    "minus infinite in a list": ("sizes: [64, -.inf]", "sizes[1]: -inf is not a finite number"),
    "warm-up over 1": (
        "recipes: {default: {warmup_ratio: 5}}",
        "recipes/default/warmup_ratio: 5 is not allowed; must be a number from 0 to 1",
    ),
    "accuracy of 1": (
        "memorisation: {accuracy_threshold: 1}",
        "memorisation/accuracy_threshold: 1 is not allowed; must be a number from 0 below 1",
    ),
    "share over a half": (
        "memorisation: {studies: {frequency: {share: 0.6}}}",
        "memorisation/studies/frequency/share: 0.6 is not allowed; must be a number above 0 to 0.5",
    ),
    "ZeRO stage": (
        "recipes: {default: {zero_stage: 4}}",
        "recipes/default/zero_stage: 4 is not allowed; must be a whole number from 0 to 3",
    ),
    "precision": (
        "recipes: {default: {precision: fp16}}",
        "recipes/default/precision: 'fp16' is not allowed; must be one of auto, fp32, bf16",
    ),
    "misspelt choice": (
        "memorisation: {start: after_last_mis}",
        "memorisation/start: 'after_last_mis' is not allowed; must be one of after_last_miss, "
        "first_crossing (did you mean 'after_last_miss'?)",
    ),
    "offload as a boolean": (
        "recipes: {default: {offload_optimizer: true}}",
        "recipes/default/offload_optimizer: true is not allowed; must be one of none, cpu",
    ),
    "misspelt key": (
        "recipes: {default: {epoch: 3}}",
        "recipes/default: unknown key 'epoch'; known: epochs, batch_size",
        "(did you mean 'epochs'?)",
    ),
    "misspelt section": (
        "recipies: {epochs: 3}",
        "unknown key 'recipies'; known: title, short_report",
        "(did you mean 'recipes'?)",
    ),
    "misspelt study": (
        "memorisation: {studies: {trade_off: {models: all}}}",
        "memorisation/studies: unknown key 'trade_off'; known: disagreement, exact, tradeoff",
        "(did you mean 'tradeoff'?)",
    ),
    "American spelling": (
        "memorization: {loss_threshold: 0.3}",
        "unknown key 'memorization'",
        "(did you mean 'memorisation'?)",
    ),
    "a key of a section": (
        "ablation: true",
        "unknown key 'ablation'; known: title, short_report",
        "; it is a key of the block unlearning",
    ),
    "a study": (
        "tradeoff: {size: 64}",
        "unknown key 'tradeoff'; known: ",
        "; it is a key of the block memorisation/studies",
    ),
    "a key of two blocks": (
        "density: {zero_stage: 2}",
        "density: unknown key 'zero_stage'; known: ",
        "; it is a key of the block recipes/default",
    ),
    "a file of a language": (
        "languages: [L1.pcfg]",
        "languages[0]: unknown language 'L1.pcfg'; known: L1, ",
        " (write L1). Add a grammar",
    ),
    "a key that is no text": ("1: 2", "unknown key 1; known: title, short_report"),
    "duplicate model": (
        "models: [opt-1.3b-twin, opt-1.3b-twin]",
        "models: ['opt-1.3b-twin', 'opt-1.3b-twin'] lists a value twice; each value is allowed "
        "once",
    ),
    "duplicate size": (
        "memorisation: {studies: {training_size: {sizes: [16, 16]}}}",
        "memorisation/studies/training_size/sizes: [16, 16] lists a value twice",
    ),
    "no models": ("models: []", "models: [] is not allowed; must be a list of at least 1, each"),
    "no models of a study": (
        "memorisation: {studies: {tradeoff: {models: []}}}",
        "memorisation/studies/tradeoff/models: [] is not allowed; ",
        "must be 'all' or a list of at least 1",
    ),
    "all, misspelt": (
        "memorisation: {studies: {tradeoff: {languages: everything}}}",
        "memorisation/studies/tradeoff/languages: 'everything' is not allowed; ",
        "must be 'all' or a list",
    ),
    "no targets": (
        "memorisation: {studies: {disagreement: {targets: 0}}}",
        "memorisation/studies/disagreement/targets: 0 is not allowed; ",
        "must be a whole number from 1 to 20",
    ),
    "a name that is a number": (
        "languages: [1]",
        "languages[0]: 1 is not allowed; must be a text",
    ),
    "unknown model": (
        "models: [opt-1.3b-twin, opt-1.4b]",
        "models[1]: unknown model 'opt-1.4b'; known: mistral-7b-v0.3, ",
        "(did you mean 'opt-1.3b'?); or add a row to config/models.tsv",
    ),
    "a study's unknown model": (
        "memorisation: {studies: {model_size: {models: [gpt-5]}}}",
        "memorisation/studies/model_size/models[0]: unknown model 'gpt-5'; known: ",
    ),
    "unknown language": (
        "languages: [L1, L9]",
        f"languages[1]: unknown language 'L9'; known: {LANGUAGES} (did you mean 'L",
        "Add a grammar as config/languages/L9.pcfg",
    ),
    "a study's unknown language": (
        "memorisation: {studies: {deduplication: {languages: [l2]}}}",
        "memorisation/studies/deduplication/languages[0]: unknown language 'l2'; known: ",
        f"known: {LANGUAGES}",
    ),
    "unknown counterpart": (
        "datasets: {high_entropy_counterpart: {L2: L1x}}",
        "datasets/high_entropy_counterpart/L2: unknown language 'L1x'",
    ),
    "counterpart of an unknown language": (
        "datasets: {high_entropy_counterpart: {L22: L1}}",
        "datasets/high_entropy_counterpart/L22: unknown language 'L22'",
    ),
    "a path for a language": (
        "languages: [../languages/L1]",
        "languages[0]: unknown language '../languages/L1'; known: ",
        "Add a grammar as config/languages/NAME.pcfg",
    ),
    "a substitution for a model": ("models: [$(id)]", "models[0]: unknown model '$(id)'; known: "),
    "letters of another script": ("languages: [λ1]", "languages[0]: unknown language 'λ1'; known"),
    "an empty name": ("languages: ['']", "languages[0]: unknown language ''; known: "),
    "a name of several lines": (
        'languages: ["L1\\nL2"]',
        "languages[0]: unknown language 'L1\\nL2'; known: ",
    ),
    "no table of models": (
        "models_table: config/nothing.tsv",
        "models_table: no such file: config/nothing.tsv",
    ),
    "a folder for the table of models": (
        "models_table: config",
        "models_table: no such file: config",
    ),
    "no folder of languages": (
        "languages_folder: config/nothing",
        "languages_folder: no such folder: config/nothing",
    ),
    "an empty path": ("models_table: ''", "models_table: '' is not allowed; must be"),
    "offload without ZeRO": (
        "recipes: {default: {offload_optimizer: cpu}}",
        "recipes/default/offload_optimizer: cpu needs recipes/default/zero_stage to be 1, 2 or 3",
    ),
    "unlearning with parted weights": (
        "recipes: {default: {zero_stage: 3}}\nengine: {twin: deepspeed}\n"
        "unlearning: {models: [pythia-1b-twin]}",
        "recipes/default/zero_stage: pythia-1b-twin cannot unlearn with ZeRO 3",
    ),
    "own settings of an unknown model": (
        "training_by_model: {llama-2-13: {zero_stage: 3}}",
        "training_by_model/llama-2-13: unknown model 'llama-2-13'; known: ",
        "(did you mean 'llama-2-13b'?)",
    ),
    "own settings of a twin": (
        "training_by_model: {opt-1.3b-twin: {zero_stage: 3}}",
        "training_by_model/opt-1.3b-twin: a twin is trained by one process",
    ),
    "an own setting that decides more than memory": (
        "training_by_model: {opt-1.3b: {epochs: 3}}",
        "training_by_model/opt-1.3b: unknown key 'epochs'; known: processes, micro_batch_size",
    ),
    "an own ZeRO stage that is none": (
        "training_by_model: {opt-1.3b: {zero_stage: 5}}",
        "training_by_model/opt-1.3b/zero_stage: 5 is not allowed; must be a whole number from 0",
    ),
    "own offload without ZeRO": (
        "training_by_model: {opt-1.3b: {offload_optimizer: cpu}}",
        "training_by_model/opt-1.3b/offload_optimizer: cpu needs "
        "training_by_model/opt-1.3b/zero_stage to be 1, 2 or 3; it is 0",
    ),
    "utilisation in percent": (
        "hardware: {utilisation: 30}",
        "hardware/utilisation: 30 is not allowed; must be a number above 0 to 1",
    ),
    "an adapter on a twin": (
        "recipes: {default: {adapter: lora}}",
        "recipes/default/adapter: lora is for full models, and mistral-7b-v0.3-twin is a twin, "
        "all of whose weights are trained; set it to none here, and in training_by_model for each "
        "full model that is to have adapters",
    ),
    "an adapter on a twin, under its own name": (
        "training_by_model: {opt-1.3b-twin: {adapter: lora}}",
        "training_by_model/opt-1.3b-twin: a twin is trained by one process",
    ),
    "an adapter on matrices that are not there": (
        "models: [opt-1.3b]\n"
        "training_by_model: {opt-1.3b: {adapter: lora, adapter_targets: [q_proj, o_proj]}}",
        "training_by_model/opt-1.3b/adapter_targets: opt-1.3b: no matrix is named 'o_proj'; known: "
        "all-linear, fc1, fc2, k_proj, out_proj, q_proj, v_proj (did you mean 'out_proj'?)",
    ),
    "an adapter that is none": (
        "recipes: {default: {adapter: lorra}}",
        "recipes/default/adapter: 'lorra' is not allowed; must be one of none, lora "
        "(did you mean 'lora'?)",
    ),
    "targets that are no list": (
        "recipes: {default: {adapter_targets: q_proj}}",
        "recipes/default/adapter_targets: 'q_proj' is not allowed; must be 'all-linear' or a list "
        "of at least 1, each a text",
    ),
    "a method that adapters rule out": (
        "unlearning: {models: [opt-1.3b], methods: [finetune, kookmin]}\n"
        "training_by_model: {opt-1.3b: {adapter: lora}}",
        "unlearning/methods[1]: kookmin cannot unlearn opt-1.3b, of which only adapters are "
        "trained: phase 1, select-gradient, reads the gradient of every weight; leave the method "
        "out, or train all weights of the model (adapter: none)",
    ),
    "a model that would fit with adapters": (
        "models: [llama-3.1-8b]\nhardware: {gpu_memory_gb: 24}\n"
        "recipes: {default: {zero_stage: 2, evaluation_batch_size: 64}}",
        "recipes/default/evaluation_batch_size: llama-3.1-8b needs 176 GB on each GPU with ZeRO 2 "
        "on 1 GPU, and hardware/gpu_memory_gb is 24; it fits with ",
        " or, with adapters, training_by_model/llama-3.1-8b: {adapter: lora, micro_batch_size: 2, "
        "evaluation_batch_size: 16}",
    ),
    "two GPUs for twins": (
        "hardware: {twin_gpus: 2}",
        "hardware/twin_gpus: 2 is not allowed; must be a whole number from 0 to 1",
    ),
    "a model that fits nowhere": (
        "models: [llama-2-13b]\nhardware: {gpu_memory_gb: 2}",
        "hardware/gpu_memory_gb: llama-2-13b needs 279 GB on each GPU with ZeRO 0 on 1 GPU, and "
        "hardware/gpu_memory_gb is 2; no settings fit; leave the model out",
    ),
    "a model that is too large": (
        "models: [opt-1.3b-twin, llama-2-13b]\nrecipes: {default: {zero_stage: 0}}",
        "recipes/default/zero_stage: llama-2-13b needs 279 GB on each GPU with ZeRO 0 on 1 GPU, "
        "and hardware/gpu_memory_gb is 80; it fits with training_by_model/llama-2-13b: ",
        "} or training_by_model/llama-2-13b: {zero_stage: 3, processes: 4}",
    ),
    "a model whose own settings are too few": (
        "models: [llama-2-13b]\ntraining_by_model: {llama-2-13b: {zero_stage: 2, processes: 2}}",
        "training_by_model/llama-2-13b: llama-2-13b needs ",
        " with ZeRO 2 on 2 GPUs, and hardware/gpu_memory_gb is 80",
    ),
    "measuring too many strings at once": (
        "models: [opt-1.3b]\nrecipes: {default: {evaluation_batch_size: 4096}}",
        "recipes/default/evaluation_batch_size: opt-1.3b needs ",
        "it fits with training_by_model/opt-1.3b: {evaluation_batch_size: 512}",
    ),
    "a seed of the exact study that no run has": (
        "memorisation: {studies: {exact: {seeds: [0, 7]}}}",
        "memorisation/studies/exact/seeds[1]: 7 is not among the seeds: 0, 1, 2",
    ),
    "a number for a model's name": (
        "engine: {1: fleet}",
        "engine: 1 is not allowed; must be a text",
    ),
    "a number for a language's name": (
        "datasets: {high_entropy_counterpart: {1: L1}}",
        "datasets/high_entropy_counterpart: 1 is not allowed; must be a text",
    ),
    "braces in a path": (
        "languages_folder: config/{language}",
        "languages_folder: 'config/{language}' is not allowed; must be a path without braces",
    ),
    "a path that turns the line around": (
        'models_table: "\\u202evst.sledom"',
        "models_table: '\\u202evst.sledom' is not allowed; must be a path without braces",
    ),
    "a path longer than any": (
        f"models_table: {'x' * 300}",
        "models_table: no such file: xxx",
    ),
    "blocks without end": (
        "models: &a [*a]",
        "models[0][0]",
        "is a block inside too many other blocks",
    ),
    "billions of values": (
        "models: &a [x, x, x, x, x, x, x, x, x, x]\n"
        "languages: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        "sizes: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
        "seeds: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]",
        "seeds[",
        "a configuration has at most 10,000 values",
    ),
    "a value of great length": (
        f"recipes: {{default: {{epochs: {'x' * 500}}}}}",
        "recipes/default/epochs: 'xxxxxxxxxxxxxxx",
        "... is not allowed; must be a whole number",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_configuration_is_one_line(mine, what):
    """It names the file, the key, the value, what is allowed and, if possible, a right spelling."""
    text, start, *parts = WRONG[what]
    path = mine(text)
    said = message(lambda: experiment(DEFAULT, path))
    assert said.startswith(f"{path}: {start}"), said
    for part in parts:
        assert part in said
    assert len(said) < 800


def required(rules, path=()):
    """Every key that a schema requires, as the path of its blocks."""
    for name in rules.get("required", []):
        yield (*path, name)
    for name, inner in rules.get("properties", {}).items():
        yield from required(inner, (*path, name))


def test_a_missing_key_is_named():
    """For every required key: the message names the key and the block that lacks it."""
    schema = schema_of(SCHEMAS, SECTIONS)
    missing = list(required(schema))
    assert len(missing) > 80
    assert {("memorisation", "studies", name, "models") for name in STUDIES} <= set(missing)
    adapters = {"recipe": "grid", "models": ["opt-1.3b", "mine"], "languages": ["L1"], "size": 16}
    people = {**adapters, "languages": ["people"]}
    fields = {**people, "margin": 2}
    exposure = {**people, "false_alarms": 0.05, "strings": 2, "values": 3}
    approximation = {"k": 10, "m1": 60, "m2": 20, "index": "exact"}
    finetuned = {
        "recipe": "default",
        "models": ["mine"],
        "languages": ["L4"],
        "size": 16,
        "tests": 32,
    }
    transfer = {"languages": ["L1"], "tuning_seeds": [0], "seeds": [1], "n": 2}
    judge = {"seeds": [7], "n": 19, "study": 4, "methods": [], "relearn": 2}
    runs = {"models": ["mine"], "languages": ["L1"], "sizes": [16], "seeds": [0]}
    null = {
        "atlas": {"foretelling": {"earlier": runs, "later": {**runs}}},
        "memorisation": {"studies": {"adapters": adapters, "fields": fields, "exposure": exposure}},
        "density": {"approximation": approximation},
        "information": {"finetuned": finetuned},
        "unlearning": {"transfer": transfer, "judge": judge},
    }
    whole = laid_over(configuration(DEFAULT), null)
    for path in missing:
        config = laid_over(whole, {})
        block = config
        for step in path[:-1]:
            block = block[step]
        del block[path[-1]]
        (mistake,) = checks.of_schema(config, schema)
        where = "/".join(path[:-1])
        said = str(Sources([DEFAULT]).error(mistake))
        assert said == f"{DEFAULT}: {where + ': ' if where else ''}the key {path[-1]!r} is missing"


def test_every_key_of_the_schema_is_in_the_default_and_described():
    """The default configuration shows every key, each has a description, and none is unknown."""

    def walk(rules, block, path):
        if rules.get("additionalProperties") is not False:
            return
        if block is not None:  # a block may be off in the default
            assert set(rules["properties"]) == set(block), path
        for name, inner in rules["properties"].items():
            assert inner["description"].endswith("."), (*path, name)
            walk(inner, block and block[name], (*path, name))

    walk(schema_of(SCHEMAS, SECTIONS), configuration(DEFAULT), ())


# Mistakes in files other than the configuration


def alone(folder, language):
    """The default configuration on one language of a folder, with an empty memorisation alone."""
    over = {"languages_folder": str(folder), "languages": [language]}
    over |= {"unlearning": None, "profiles": None, "density": None, "information": None}
    config = laid_over(configuration(DEFAULT), over)
    config["memorisation"]["studies"], config["datasets"]["high_entropy_counterpart"] = {}, {}
    return config


def test_a_size_larger_than_a_language_is_refused(mine, tmp_path):
    """A finite language cannot give more different strings than it has."""
    (tmp_path / "coin.pcfg").write_text("S -> 'a' [0.5] | 'b' [0.5]\n")
    path = mine(f"languages_folder: {tmp_path}\nlanguages: [coin]\nsizes: [2, 3]\n")
    config = {**alone(tmp_path, "coin"), "sizes": [2, 3]}
    said = message(lambda: experiment(DEFAULT, path, config=config))
    assert said.startswith(f"{path}: sizes: 3 strings cannot be drawn for training from coin")
    assert "has at most 2" in said
    config["sizes"] = [2]
    assert experiment(DEFAULT, path, config=config).languages == ["coin"]


SIZES = {
    "memorisation/studies/tradeoff/size": {
        "models": "all", "languages": "all", "size": 3, "recipe": "grid"
    },
    "memorisation/studies/training_size/sizes": {
        "models": "all", "languages": "all", "sizes": [2, 3], "recipe": "grid"
    },
    "unlearning/size": {"languages": ["coin"], "size": 3},
}  # fmt: skip


@pytest.mark.parametrize("key", SIZES)
def test_the_key_of_a_size_that_is_too_large_is_named(tmp_path, key):
    """The size may be a key of a study, of a section or of the grid."""
    (tmp_path / "coin.pcfg").write_text("S -> 'a' [0.5] | 'b' [0.5]\n")
    config = {**alone(tmp_path, "coin"), "sizes": [2]}
    if key.startswith("memorisation"):
        config["memorisation"]["studies"] = {key.split("/")[2]: SIZES[key]}
    else:
        config["unlearning"] = {**configuration(DEFAULT)["unlearning"], **SIZES[key]}
    said = message(lambda: experiment(DEFAULT, config=config))
    assert said.startswith(f"{DEFAULT}: {key}: 3 strings cannot be drawn for training from coin")


GRAMMARS = {
    # what is wrong: (grammar, message after the file's name)
    "white space in a terminal": (
        "S -> 'a b' [0.5] | 'c' [0.5]",
        ": the terminal 'a b' is empty or has white space in it",
    ),
    "sum": ("S -> 'a' [0.5] | 'b' [0.2]", ":1: the rules of S sum to 0.7"),
    "no arrow": ("S 'a'", ":1: missing arrow"),
    "never ends": ("S -> 'a' S S [0.9] | 'b' [0.1]", ":1: "),
    "empty": ("", ": empty file"),
    "bytes": (b"\xff\xfe\x00", ""),
}


@pytest.mark.parametrize("what", GRAMMARS)
def test_a_broken_grammar_is_named_before_any_job_starts(tmp_path, what):
    """The message begins with the grammar's file and line, which the user has to mend."""
    grammar, start = GRAMMARS[what]
    file = tmp_path / "mine.pcfg"
    file.write_bytes(grammar if isinstance(grammar, bytes) else grammar.encode())
    said = message(lambda: experiment(DEFAULT, config=alone(tmp_path, "mine")))
    assert said.startswith(f"{file}{start}")


def test_a_grammar_with_a_name_of_its_own_is_refused(tmp_path):
    """A name becomes a path and a wildcard, so a file that exists may still have a bad one."""
    (tmp_path / "my language.pcfg").write_text("S -> 'a' [1]\n")
    said = message(lambda: experiment(DEFAULT, config=alone(tmp_path, "my language")))
    assert "languages[0]: 'my language' is not a name; allowed are letters, digits" in said
    assert "rename its file" in said


def test_a_broken_table_of_models_is_named_before_any_job_starts(mine, tmp_path):
    """The message has the table's own file, line and column."""
    table = Path("config/models.tsv").read_text().replace("5e-6", "fast", 1)
    (tmp_path / "models.tsv").write_text(table)
    said = message(lambda: experiment(DEFAULT, mine(f"models_table: {tmp_path}/models.tsv")))
    assert said.startswith(f"{tmp_path}/models.tsv:2: learning_rate: 'fast' must be")


def test_one_method_of_ones_own_needs_no_other_file(mine):
    """Its phases are in the file that asks for it, and no other section is needed."""
    phases = (
        "[{erase: gradient-ascent, share: 0.2, rate: 0.5}, {repair: finetune, share: 0.5, rate: 1}]"
    )
    path = mine(
        f"unlearning: {{own_methods: {{mine: {{phases: {phases}}}}}, methods: [mine]}}\n"
        "memorisation: null\nprofiles: null\ndensity: null\ninformation: null\n"
    )
    whole = experiment(DEFAULT, path)
    assert any("/unlearned/mine/" in file for file in whole.outputs["unlearning"])
    # A table of pairs of methods would be empty, and so would be its figure.
    assert not any("agreement" in file for file in whole.outputs["unlearning"])
    assert not whole.drawings.keys() & {
        ("unlearning_agreement", "L3"),
        ("unlearning_agreement", "L4"),
    }
    assert [len(made) for made in jobs_of(whole.settings).phases().values()][1] == 2


@pytest.mark.parametrize("value", [-1, "0.2 nats"])
def test_a_number_or_null_is_said_to_be_one(value):
    over = {"records": {"loss_threshold": value}}
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert said.startswith("--config: records/loss_threshold: ")
    assert "a number from 0, or null" in said
