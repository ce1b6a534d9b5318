"""A relying party: idpyoidc's handler of relying parties, in Flask."""

import json
import os
import secrets
from typing import Any

import flask
from idpyoidc.client.rp_handler import RPHandler
from tests.slow.relying_parties.pages import fingerprint, page
from werkzeug.serving import make_server

ISSUER, CLIENT_ID, CLIENT_SECRET = (os.environ[f"OIDC_{name}"] for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"))
application = flask.Flask(__name__)
application.secret_key = secrets.token_hex()
handlers: dict[str, RPHandler] = {}


def handler() -> RPHandler:
    return handlers["one"]


@application.get("/")
def home() -> str:
    return page(flask.session.get("user"))


@application.get("/sign-in")
def sign_in() -> Any:
    return flask.redirect(handler().begin(issuer_id=ISSUER))


@application.get("/callback")
def callback() -> Any:
    if "error" in flask.request.args:
        return page(None) + f'<p id="error">{flask.request.args["error"]}</p>'
    found = handler().finalize(ISSUER, flask.request.args.to_dict())
    user, tokens = found["userinfo"], {"access_token": found["token"], "id_token": found["id_token"].to_json()}
    flask.session["user"] = {"sub": user["sub"], "name": user["name"]} | {
        name: fingerprint(token) for name, token in tokens.items()
    }
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
        "preference": {"response_types": ["code"], "scopes_supported": ["openid", "profile"]},
        "usage": {"scope": ["openid", "profile"]},
    }
    handlers["one"] = RPHandler(base_url=base_url, client_configs={ISSUER: client})
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()
