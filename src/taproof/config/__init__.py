"""Configuration: `settings.py` reads and checks it, `options.py` describes each option, `logging.py` sets up the log.

Only `taproof.cli` and `taproof.runtime` import this package. Other packages receive values as arguments.
"""
