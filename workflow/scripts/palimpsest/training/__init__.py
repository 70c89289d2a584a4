"""Training: the recipe, the order of the data, evaluation, and the engines that write traces."""
