rule write_report:
    input:
        figures=language_figures() + study_figures(),
        claims="results/claims.parquet",
        agreement=agreement_tables,
        manifests=of_groups(RUN + "/manifest.json", study.trained_groups),
    output:
        "results/report.html",
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
