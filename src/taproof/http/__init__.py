"""What the API, the console and the sandbox share of HTTP.

`https_only.py` admits only HTTPS and loopback requests. `body.py` reads request bodies, `limits/` limits rates, and
`errors.py` turns every failure into one JSON shape. `fixed_answer.py` sends pages and documents made at start,
`sdk_files.py` the browser SDK. `requester.py` tells who sends a request, `metrics.py` counts,
`instants.py` reads times.
"""
