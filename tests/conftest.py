"""What all tests share: windows open on no screen."""

import os

# Before pygame is imported: the checker of Gymnasium tries the mode "human" too.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
