"""The SQLite driver, for one machine. `store.py` composes its parts.

`connection.py` opens the file, and `database.py` reads and writes. `group_commit.py` commits concurrent writes
together, and `counts.py` counts for all of them. `notify.py` announces decisions to other processes.
"""
