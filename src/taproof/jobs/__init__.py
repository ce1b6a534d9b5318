"""The background jobs that run next to the API.

`housekeeping.py` deletes expired data. `leader.py` elects the process that runs a job. `taproof.service.loop` repeats a
job and survives store outages. `taproof.runtime.app` starts and stops the jobs.
"""
