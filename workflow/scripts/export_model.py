"""A trained model as a folder of Hugging Face, from the weights of its run."""

import os

from safetensors.torch import load_file

from palimpsest import manifests
from palimpsest.models import read_models
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        # Nothing is computed here. DeepSpeed, which transformers imports, would look for a GPU and
        # print that there is none.
        os.environ["DS_ACCELERATOR"] = "cpu"
        from palimpsest.jobs.export import export_run

        export_run(
            snakemake.output.folder,
            manifests.read(snakemake.input.manifest),
            load_file(snakemake.input.weights),
            read_models(snakemake.params.models),
        )
