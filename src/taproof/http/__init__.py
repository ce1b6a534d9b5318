"""The HTTP code that the API, the console and the sandbox share.

`https_only.py` admits only HTTPS and loopback requests. `body.py` reads request bodies, `limits/` limits rates, and
`errors.py` turns every failure into one JSON shape. `fixed_answer.py` sends pages and documents made at start,
`sdk_files.py` the browser SDK. `requester.py` describes the client of a request, `metrics.py` has the counters, and
`instants.py` reads times.
"""
