"""The PostgreSQL driver, for many nodes. `store.py` puts its parts together.

`pool.py` has the connections, `batcher.py` makes one statement of concurrent calls, `partitions.py` manages one
partition for each day, and `notify.py` tells other nodes about decisions.
"""
