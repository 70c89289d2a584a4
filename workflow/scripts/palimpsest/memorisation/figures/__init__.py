"""The figures of the studies; their titles and captions are in the files of the studies."""
