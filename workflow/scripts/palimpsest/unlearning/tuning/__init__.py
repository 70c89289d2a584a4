"""The search for the settings of methods, on problems of its own."""
