"""Set how long Hypothesis searches: briefly on every run, for hours with `--hypothesis-profile=soak`."""

from hypothesis import settings

# The tests run on a shared and sometimes slow machine, where a deadline would measure its other users.
settings.register_profile("quick", max_examples=60, stateful_step_count=40, deadline=None)
settings.register_profile("soak", max_examples=2_000, stateful_step_count=80, deadline=None)
settings.load_profile("quick")
