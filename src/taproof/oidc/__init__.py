"""The OpenID provider over HTTP (contract.md, OpenID provider). `app.py` lists all routes.

`authorize.py` receives authorization requests and serves the sign-in page, and `device.py` serves the page for devices.
`token.py` serves the endpoints that clients call: token, userinfo, pushed requests and device authorization.
`metadata.py` serves discovery and the JWK set. `pages/` renders the pages, and `answers.py` has the shape of responses
and errors.
"""
