"""The demo application: `server.py` serves its page and checks proofs, and `id_tokens.py` checks ID tokens.

In the browser, `demo.js` is the page, and `openid.js` is its sign-in with OpenID Connect.
"""
