# What a job can see of the host, in both kinds of rule. The environment is one of the project's own,
# so that it is made once for all tests.
rule look_by_script:
    input:
        names="names.json",
    output:
        found="found-by-script.json",
    conda:
        "envs/languages.yaml"
    script:
        "workflow/scripts/probe.py"


rule look_by_shell:
    input:
        names="names.json",
    output:
        found="found-by-shell.json",
    conda:
        "envs/languages.yaml"
    shell:
        "python workflow/scripts/probe.py {input.names} {output.found}"
