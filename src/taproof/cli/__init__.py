"""The command line. `main.py` is the entry point; each command group has its own file.

`command.py` opens the store and the use cases for a command, `developer_api.py` calls the developer API on the local
database or, through `remote.py`, on a service, `output.py` prints, `help.py` prints help, `credentials.py` stores the
access tokens of `taproof login`, and `doctor/` checks an installation. Like the HTTP API, commands call the use cases
of `taproof.service`, and start the service through `taproof.runtime`.
"""
