"""The OpenID provider: applications that speak OpenID Connect sign users in with a messenger.

`pages/` renders what a user sees in the browser.
"""
