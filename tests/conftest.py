"""What all tests need of their process."""

import signal

# A suite that a shell started in the background ignores interrupts, and so would all programs that its tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
