"""`python -m zhat`: the same as the command `zhat`."""

from __future__ import annotations

from zhat_command import main

# Processes that Python starts to help import this file again, under another name.
if __name__ == "__main__":
    main()
