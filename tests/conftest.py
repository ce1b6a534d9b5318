"""How long Hypothesis searches: briefly on every run, `--hypothesis-profile=soak` for hours of looking."""

from hypothesis import settings

# The machine that runs the tests is shared and slow at times: a deadline would only measure its other users.
settings.register_profile("quick", max_examples=60, stateful_step_count=40, deadline=None)
settings.register_profile("soak", max_examples=2_000, stateful_step_count=80, deadline=None)
settings.load_profile("quick")
