"""A relying party: idpyoidc's handler of relying parties, in Flask."""

import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

import flask
from idpyoidc.client.rp_handler import RPHandler
from idpyoidc.message import Message
from tests.slow.relying_parties.pages import fingerprint, page
from werkzeug.serving import make_server

ISSUER, CLIENT_ID, CLIENT_SECRET = (os.environ[f"OIDC_{name}"] for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"))
SCOPE = ["openid", "profile", "offline_access"]
application = flask.Flask(__name__)
application.secret_key = secrets.token_hex()
handlers: dict[str, RPHandler] = {}


def handler() -> RPHandler:
    return handlers["one"]


@application.get("/")
def home() -> str:
    return page(flask.session.get("user"), can_refresh=True)


@application.get("/sign-in")
def sign_in() -> Any:
    return flask.redirect(handler().begin(issuer_id=ISSUER))


@application.get("/callback")
def callback() -> Any:
    if "error" in flask.request.args:
        return page(None) + f'<p id="error">{flask.request.args["error"]}</p>'
    found = handler().finalize(ISSUER, flask.request.args.to_dict())
    flask.session["state"] = found["state"]
    return sign_in_with(found["userinfo"], found["token"], found["id_token"])


@application.post("/refresh")
def refresh() -> Any:
    state = flask.session["state"]
    found = handler().refresh_access_token(state)
    user = handler().get_user_info(state, access_token=found["access_token"])
    return sign_in_with(user, found["access_token"], found["__verified_id_token"])


def sign_in_with(user: Mapping[str, str], access_token: str, id_token: Message) -> Any:
    tokens = {"access_token": fingerprint(access_token), "id_token": fingerprint(id_token.to_json())}
    flask.session["user"] = {"sub": user["sub"], "name": user["name"], **tokens}
    return flask.redirect("/")


@application.post("/sign-out")
def sign_out() -> Any:
    flask.session.clear()
    return flask.redirect("/")


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ["PORT"]), application, threaded=True)
    base_url = f"http://127.0.0.1:{server.server_port}"
    client = {
        "issuer": ISSUER,
        "client_type": "oidc",
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [f"{base_url}/callback"],
        "client_authn_methods": ["client_secret_basic"],  # Only the refresh needs it.
        "preference": {"scopes_supported": SCOPE},
        "usage": {"scope": SCOPE},
    }
    handlers["one"] = RPHandler(base_url=base_url, client_configs={ISSUER: client})
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()
