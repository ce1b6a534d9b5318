"""A relying party: Authlib's Flask client as its documentation shows it, without PKCE; the name is in the ID token."""

import json
import os
import secrets

from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, session, url_for
from tests.slow.relying_parties.pages import fingerprint, page
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

app = Flask(__name__)
app.config.update(SECRET_KEY=secrets.token_hex(), SESSION_COOKIE_NAME="flask")
oauth = OAuth(app)
oauth.register(
    "provider",
    server_metadata_url=f"{os.environ['OIDC_ISSUER']}/.well-known/openid-configuration",
    client_id=os.environ["OIDC_CLIENT_ID"],
    client_secret=os.environ["OIDC_CLIENT_SECRET"],
    client_kwargs={"scope": "openid profile"},
)


@app.get("/")
def home() -> str:
    return page(session.get("user"))


@app.get("/sign-in")
def sign_in() -> Response:
    answer: Response = oauth.provider.authorize_redirect(url_for("callback", _external=True))
    return answer


@app.get("/callback")
def callback() -> Response:
    token = oauth.provider.authorize_access_token()
    tokens = {each: fingerprint(token[each]) for each in ("access_token", "id_token")}
    session["user"] = {"sub": token["userinfo"]["sub"], "name": token["userinfo"]["name"], **tokens}
    return redirect("/", 303)


@app.post("/sign-out")
def sign_out() -> Response:
    session.clear()
    return redirect("/", 303)


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(os.environ["PORT"]), app, threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()
