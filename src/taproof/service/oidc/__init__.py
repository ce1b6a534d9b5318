"""The use cases of the OpenID provider (contract.md, OpenID provider).

`clients.py` manages clients for their developers. `requests.py` reads authorization requests, `sign_in.py` serves the
sign-in page, and `tokens.py` issues tokens for codes and device codes. `devices.py` starts the sign-ins of devices.
`keys.py` has the keys that sign ID tokens.
"""
