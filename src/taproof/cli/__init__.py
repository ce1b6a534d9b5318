"""The command line. `main.py` is the entry point; each command group has a file of its own.

`command.py` opens the store and the use cases for a command, `output.py` prints, `credentials.py` keeps what
`taproof login` received, and `doctor/` checks an installation. Commands call the use cases of `taproof.service`,
as the HTTP API does, and start the service through `taproof.runtime`.
"""
