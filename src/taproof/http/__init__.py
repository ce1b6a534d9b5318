"""The HTTP code that the API, the console and the sandbox share.

`https_only.py` admits only HTTPS and loopback requests. `body.py` reads request bodies, `limits/` limits rates, and
`errors.py` turns every failure into one JSON shape. `fixed_answer.py` serves pages and documents that are built at
startup, and `sdk_files.py` serves the browser SDK. `qr_code.py` draws the code of a link. `requester.py` describes a
request's client, `metrics.py` contains the metrics, and `instants.py` parses times.
"""
