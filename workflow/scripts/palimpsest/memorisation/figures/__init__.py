"""The figures of the studies; their titles and captions stand with the studies."""
