rule write_report:
    input:
        figures=all_figures(),
        claims="results/claims.parquet",
        tradeoff=study_tables("tradeoff"),
        agreement=of_groups(EXACT, exact_groups(), table="agreement"),
        manifests=of_groups(MANIFEST, study.trained_groups),
    output:
        "results/report.html",
    params:
        code=of_code("figures", "report"),
    log:
        "logs/report.log",
    benchmark:
        "benchmarks/report.tsv"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    conda:
        "../../envs/figures.yaml"
    script:
        "../scripts/report.py"
