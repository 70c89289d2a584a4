"""Planning: estimates of the memory, time and disk that an experiment needs, before it runs."""
