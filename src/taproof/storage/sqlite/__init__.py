"""The SQLite driver, for one machine. `store.py` puts its parts together.

`connection.py` opens the file, `group_commit.py` commits concurrent writes together, `counters.py` counts for all of
them, and `notify.py` tells other processes about decisions.
"""
