# The atlas: cheap measures of memorisation against exact retraining without every string.
include: "functions/atlas.smk"


rule atlas:
    input:
        delivered("atlas"),
    localrule: True


rule retrain_without_each:
    input:
        traces=with_seeds(fill(paths.TRACE, variant="base")),
        datasets=with_seeds(paths.BASE_DATASET),
        removals=with_seeds(fill(paths.TRACE, variant=REMOVALS)),
        again=with_seeds(fill(paths.TRACE, variant=REMOVALS_AGAIN)),
    output:
        retrained=mapped.TRUTH.path,
        influence=mapped.INFLUENCE.path,
        halves=mapped.HALF_RUNS.path,
    log:
        "logs/retrain_without_each/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/retrain_without_each/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.atlas.truth:truth_tables"),
        start=THRESHOLDS["start"],
    script:
        "../scripts/make.py"


rule weigh_measures:
    input:
        traces=with_seeds(fill(paths.TRACE, variant="base")),
        datasets=with_seeds(paths.BASE_DATASET),
        tokens=with_seeds(fill(paths.TOKENS, variant="base")),
        truth=mapped.TRUTH.path,
        influence=mapped.INFLUENCE.path,
        halves=mapped.HALF_RUNS.path,
        manifests=with_seeds(fill(paths.MANIFEST, variant="base")),
        removals_manifests=with_seeds(fill(paths.MANIFEST, variant=REMOVALS)),
    output:
        contenders=mapped.CONTENDERS.path,
        frontier=mapped.FRONTIER.path,
        atlas=mapped.ATLAS.path,
    log:
        "logs/weigh_measures/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/weigh_measures/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.atlas.frontier:frontier_tables"),
        **THRESHOLDS,
    script:
        "../scripts/make.py"
