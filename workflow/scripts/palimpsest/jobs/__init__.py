"""Jobs: commands that make something of models, with one command line, supervision and delivery."""
