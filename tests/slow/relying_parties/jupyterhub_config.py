"""A relying party: JupyterHub with oauthenticator's GenericOAuthenticator, set up as its documentation recommends.

Start it with `jupyterhub -f` in a directory of its own. Users are named by their `sub`. They stay on the hub's home
page, because no notebook server is needed to see who is signed in. `PROXY` is the command of configurable-http-proxy.
"""

import json
import os
import shlex
from typing import Any

import requests
from jupyterhub.utils import random_port
from tests.slow.relying_parties.pages import fingerprint

c = get_config()  # type: ignore[name-defined] # noqa: F821 — traitlets provides it.
port = int(os.environ["PORT"]) or random_port()
published = requests.get(f"{os.environ['OIDC_ISSUER']}/.well-known/openid-configuration", timeout=30).json()


def report(_authenticator: object, _handler: object, signed_in: dict[str, Any]) -> dict[str, Any]:
    """Print who signed in: the hub shows neither the name nor anything of the tokens."""
    state = signed_in["auth_state"]
    tokens = {each: fingerprint(state["token_response"][each]) for each in ("access_token", "id_token")}
    print(json.dumps({"sub": signed_in["name"], "name": state["oauth_user"]["name"], **tokens}), flush=True)
    return signed_in


c.JupyterHub.authenticator_class = "generic-oauth"
c.GenericOAuthenticator.client_id = os.environ["OIDC_CLIENT_ID"]
c.GenericOAuthenticator.client_secret = os.environ["OIDC_CLIENT_SECRET"]
c.GenericOAuthenticator.authorize_url = published["authorization_endpoint"]
c.GenericOAuthenticator.token_url = published["token_endpoint"]
c.GenericOAuthenticator.userdata_url = published["userinfo_endpoint"]
c.GenericOAuthenticator.oauth_callback_url = f"http://127.0.0.1:{port}/hub/oauth_callback"
c.GenericOAuthenticator.scope = ["openid", "profile"]
c.GenericOAuthenticator.username_claim = "sub"
c.GenericOAuthenticator.login_service = "a messenger"
c.GenericOAuthenticator.allow_all = True
c.GenericOAuthenticator.post_auth_hook = report

c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{random_port()}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{random_port()}"
c.ConfigurableHTTPProxy.command = shlex.split(os.environ["PROXY"])
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.redirect_to_server = False
print(json.dumps({"port": port}), flush=True)
