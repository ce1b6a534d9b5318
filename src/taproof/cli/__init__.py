"""The command line. `main.py` is the entry point; each command group has its own file.

`command.py` opens the store and the use cases for a command, `output.py` prints, `credentials.py` stores the
access tokens of `taproof login`, and `doctor/` checks an installation. Like the HTTP API, commands call the use cases
of `taproof.service`, and start the service through `taproof.runtime`.
"""
