"""The rules of the OpenID provider (contract.md, OpenID provider). Nothing here reads a store, a clock or a network.

`requests.py` checks authorization requests, and `model.py` has the stored values. `claims.py` builds ID tokens and
userinfo responses, which `signing.py` signs. `errors.py` has the errors of the RFCs. `clients.py` and
`redirect_uris.py` have the rules of clients.
"""
