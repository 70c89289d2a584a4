rule write_report:
    input:
        figures=[*all_figures(), *unlearning_figures()],
        claims="results/claims.parquet",
        tradeoff=study_tables("tradeoff"),
        agreement=with_targets_measured("agreement"),
        approximation=with_strings_left_out("approximation"),
        manifests=of_groups(MANIFEST, study.trained_groups),
        unlearning=unlearning_tables(),
    output:
        "results/report.html",
    log:
        "logs/report.log",
    benchmark:
        "benchmarks/report.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=of_code("figures", "report"),
    script:
        "../scripts/report.py"
