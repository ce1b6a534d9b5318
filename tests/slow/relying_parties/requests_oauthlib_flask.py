"""A relying party: requests-oauthlib in Flask, which uses OAuth 2.0 and calls userinfo."""

import json
import os
import secrets
from typing import Any

import flask
import requests
from requests_oauthlib import OAuth2Session
from tests.slow.relying_parties.pages import fingerprint, page
from werkzeug.serving import make_server

ISSUER, CLIENT_ID, CLIENT_SECRET = (os.environ[f"OIDC_{name}"] for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"))
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # The provider of the tests has plain HTTP on loopback.
endpoints: dict[str, Any] = requests.get(f"{ISSUER}/.well-known/openid-configuration", timeout=30).json()
SCOPE = ["openid", "profile", "offline_access"]
held: dict[str, dict[str, Any]] = {}
"""The tokens, by `sub`."""
application = flask.Flask(__name__)
application.secret_key = secrets.token_hex()


def client(**options: Any) -> OAuth2Session:
    redirect_uri = flask.url_for("callback", _external=True)
    return OAuth2Session(CLIENT_ID, redirect_uri=redirect_uri, scope=SCOPE, **options)


@application.get("/")
def home() -> str:
    return page(flask.session.get("user"), can_refresh=True)


@application.get("/sign-in")
def sign_in() -> Any:
    address, flask.session["state"] = client().authorization_url(endpoints["authorization_endpoint"])
    return flask.redirect(address)


@application.get("/callback")
def callback() -> Any:
    if "error" in flask.request.args:
        return page(None) + f'<p id="error">{flask.request.args["error"]}</p>'
    oauth = client(state=flask.session.pop("state"))
    # Its own check of the transport wants https; see above.
    token = oauth.fetch_token(
        endpoints["token_endpoint"], client_secret=CLIENT_SECRET, authorization_response=flask.request.url
    )
    user = oauth.get(endpoints["userinfo_endpoint"]).json()
    return sign_in_with(user, token)


@application.post("/refresh")
def refresh() -> Any:
    token = held[flask.session["user"]["sub"]]
    oauth = client(token=token)
    token = oauth.refresh_token(
        endpoints["token_endpoint"], auth=(CLIENT_ID, CLIENT_SECRET), refresh_token=token["refresh_token"]
    )
    return sign_in_with(oauth.get(endpoints["userinfo_endpoint"]).json(), token)


def sign_in_with(user: dict[str, str], token: dict[str, Any]) -> Any:
    held[user["sub"]] = token
    tokens = {name: fingerprint(token[name]) for name in ("access_token", "id_token")}
    flask.session["user"] = {"sub": user["sub"], "name": user["name"], **tokens}
    return flask.redirect("/")


@application.post("/sign-out")
def sign_out() -> Any:
    flask.session.clear()
    return flask.redirect("/")


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ["PORT"]), application, threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()
