"""Configuration: what can be set, how it is read, and the log.

`settings.py` declares and reads every setting. `values.py` has their types, and `options.py` how a setting is named.
Only `taproof.cli` and `taproof.runtime` import this package. Other packages receive values as arguments.
"""
