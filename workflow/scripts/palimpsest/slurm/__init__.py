"""Running on a SLURM cluster: the site's account and partitions, checked before any job starts."""
