"""What all tests need of their process."""

import signal

from hypothesis import settings

# A suite that a shell started in the background ignores interrupts, and so would all programs that its tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples at every run: what fails fails again, and what passed yesterday passes today.
settings.register_profile("zhat", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("zhat")
