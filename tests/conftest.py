"""Property tests draw the same examples in every run, and never fail for being slow."""

from hypothesis import settings

settings.register_profile(
    "course", derandomize=True, deadline=None, database=None, max_examples=100
)
settings.load_profile("course")
