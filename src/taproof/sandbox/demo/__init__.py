"""The demo: `server.py` serves its pages and checks proofs, and `id_tokens.py` checks ID tokens.

In the browser, `shop.html` is the application: a shop with the sign-in button of the SDK. `stage.html` is the page
around it, with the phone beside it and a drawer whose rows `steps.js` builds. `openid.js` signs in with OpenID Connect.
"""
