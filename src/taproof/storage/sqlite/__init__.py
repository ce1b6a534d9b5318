"""The SQLite driver, for one machine. `store.py` composes its parts.

`connection.py` opens the file, `database.py` reads and writes, `group_commit.py` commits concurrent writes together,
`counters.py` counts for all of them, and `notify.py` tells other processes about decisions.
"""
