"""The background jobs that run beside the API.

`housekeeping.py` deletes expired data. `leader.py` elects the one process that runs a job, and `loop.py` repeats a
job and survives an outage of the store. `taproof.runtime.app` starts and stops the jobs.
"""
