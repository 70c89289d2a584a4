# Results of all sections: figures, answers, claims and the report.
include: "functions/results.smk"


# Which claims are tested
CHOSEN_CLAIMS = config["claims"] or {"power_table": [], "least_power": 0}


rule figures:
    input:
        experiment.all_figures,
    localrule: True


rule report:
    input:
        paths.REPORT,
    localrule: True


rule figure:
    input:
        unpack(figure_inputs),
    output:
        svg=fill(paths.FIGURE, format="svg"),
        png=fill(paths.FIGURE, format="png"),
    log:
        "logs/figure/{figure}-{language}.log",
    benchmark:
        "benchmarks/figure/{figure}-{language}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        make="palimpsest.results:figure",
        code=figure_code,
    script:
        "../scripts/make.py"


rule claims:
    input:
        **{kind.name: experiment.tables(kind) for kind in experiment.judged},
        powers=CHOSEN_CLAIMS["power_table"],
    output:
        **paths.CLAIMS_COPIES,
        table=paths.CLAIMS,
    log:
        "logs/claims.log",
    benchmark:
        "benchmarks/claims.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        **made_by("palimpsest.results:claims", *experiment.locations("claims")),
        sections=[section.name for section in experiment.sections],
        families=experiment.families,
        facts=experiment.facts,
        least_power=CHOSEN_CLAIMS["least_power"],
    script:
        "../scripts/make.py"


rule headline:
    input:
        **{kind.name: experiment.tables(kind) for kind in experiment.headlined},
    output:
        **paths.HEADLINE_COPIES,
        table=paths.HEADLINE,
    log:
        "logs/headline.log",
    benchmark:
        "benchmarks/headline.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **made_by("palimpsest.results:headline", *experiment.locations("headline")),
        rows=experiment.locations("headline"),
    script:
        "../scripts/make.py"


# To choose the claims of an experiment with other seeds
rule power_table:
    input:
        claims=paths.CLAIMS,
    output:
        table="results/power.tsv",
    log:
        "logs/power_table.log",
    benchmark:
        "benchmarks/power_table.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **made_by("palimpsest.results:power_table"),
    script:
        "../scripts/make.py"


rule write_report:
    input:
        experiment.all_figures,
        list(experiment.pages.values()),
        **{kind.name: experiment.tables(kind) for kind in experiment.reported},
        grammars=experiment.tables(GRAMMAR),
        headline=paths.HEADLINE,
        claims=paths.CLAIMS,
        powers=CHOSEN_CLAIMS["power_table"],
        manifests=manifests_of_runs(),
        models=manifest_of_every_model(),
    output:
        page=paths.REPORT,
        pages=directory(paths.REPORT_PAGES),
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
        # The report prints commands with the files of --configfile.
        commands.configfiles(),
        **made_by(
            "palimpsest.results:report",
            *experiment.locations("report"),
            *experiment.locations("sentences"),
            *declarations_of_figures(),
        ),
        # The report prints the titles, and no fingerprint covers them.
        sections={section.name: section.title for section in experiment.sections},
        facts=experiment.facts,
        drawn=drawn(),
        own_pages=experiment.pages,
        title=lookup("title", within=config),
        is_short=lookup("short_report", within=config),
        least_power=CHOSEN_CLAIMS["least_power"],
    script:
        "../scripts/make.py"
