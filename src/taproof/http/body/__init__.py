"""The request body: `read.py` reads it up to a limit, `deadline.py` bounds the time, `json.py` parses it."""
