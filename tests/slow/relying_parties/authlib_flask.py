"""A relying party: the Flask application of docs/how-to/oidc/authlib.md, and an address that shows its session."""

import importlib
import json
import os
import secrets
from pathlib import Path

from flask import Flask, session
from tests.docs.blocks import block_of
from tests.slow.relying_parties.pages import page
from werkzeug.serving import make_server


def shown() -> str:
    user = session.get("user")
    return page(user and {"sub": user["id"], "name": user["name"]})


if __name__ == "__main__":
    os.environ["SESSION_SECRET"] = secrets.token_hex()
    Path("shop.py").write_text(block_of("how-to/oidc/authlib.md", "python", "flask_client").text, "utf-8")
    app: Flask = importlib.import_module("shop").app

    app.add_url_rule("/shown", view_func=shown)
    server = make_server("127.0.0.1", int(os.environ["PORT"]), app, threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()
