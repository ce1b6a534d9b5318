"""An application on Flask that uses the decorators."""

import os

from flask import Flask, jsonify, render_template_string, request, session
from flask.typing import ResponseReturnValue

from taproof.integrations.flask import (
    TaproofSettings,
    current_identity,
    signed_in,
    signed_in_or_redirect,
    taproof_blueprint,
)
from taproof.sdk.guard import SqliteGuard

app = Flask(__name__)
app.secret_key = "not a secret: a test's"
app.config.from_mapping({name: value for name, value in os.environ.items() if name.startswith("TAPROOF_")})
app.register_blueprint(
    taproof_blueprint(TaproofSettings.from_mapping(app.config), guard=SqliteGuard(os.environ["SITE_GUARD"]))
)


@app.before_request
def read_first() -> None:
    if "read-first" in request.args:
        request.get_data()


@app.get("/")
def home() -> str:
    return "home"


@app.get("/button")
def button() -> str:
    return render_template_string("{{ taproof }}")


@app.get("/plant")
def plant() -> str:
    session["planted"] = "yes"
    return "planted"


@app.get("/whoami")
@signed_in
def whoami() -> ResponseReturnValue:
    return jsonify(session=dict(session))


@app.get("/members")
@signed_in_or_redirect("/")
def members() -> ResponseReturnValue:
    identity = current_identity()
    return "" if identity is None else identity.messenger_name


@app.get("/anybody")
def anybody() -> ResponseReturnValue:
    return jsonify(somebody=current_identity() is not None, session=dict(session))
