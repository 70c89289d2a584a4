"""Jobs: commands that train models or query trained models.

All jobs share one command line, one supervision and one way to deliver their files.
"""
