include: "functions/plan.smk"


# What there is to do is worked out with the graph of jobs; the job itself writes it down. It is made
# anew whenever it is asked for, because finished runs change it and are none of its inputs.
rule plan:
    output:
        table=paths.PLAN,
    log:
        "logs/plan.log",
    benchmark:
        "benchmarks/plan.tsv"
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        rows=plan_rows,
        summary=plan_summary,
        moment=moment,
    script:
        "../scripts/plan.py"
