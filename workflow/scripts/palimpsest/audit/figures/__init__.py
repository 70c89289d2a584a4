"""The figures of the audit: every file with a `FIGURE` is one."""
