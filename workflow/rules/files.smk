import os
import sys

# The library is beside the scripts, where they find it in any environment.
sys.path.insert(0, os.path.join(workflow.basedir, "workflow", "scripts"))

from palimpsest.errors import UserError
from palimpsest.yaml_files import check_file

# Before Snakemake reads them: it would not name a broken file, nor mind a key that is given twice.
try:
    for path in ["config/config.yaml", *(workflow.overwrite_configfiles or [])]:
        if os.path.exists(path):
            check_file(path)
except UserError as error:
    sys.exit(f"error: {error}")
