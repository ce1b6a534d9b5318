"""The demo application: `server.py` serves its page and checks the proof."""
