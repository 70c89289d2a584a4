"""The claims on unlearning, and the statistics that test them."""
