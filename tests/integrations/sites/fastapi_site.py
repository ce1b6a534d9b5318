"""An application on FastAPI that uses the dependencies."""

import os
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse
from starlette.middleware.sessions import SessionMiddleware

from taproof.integrations.starlette import (
    SignedIn,
    TaproofSettings,
    current_identity,
    signed_in,
    signed_in_or_redirect,
    taproof_routes,
)
from taproof.sdk.guard import SqliteGuard

app = FastAPI()
app.router.routes.extend(
    taproof_routes(TaproofSettings.from_mapping(os.environ), guard=SqliteGuard(os.environ["SITE_GUARD"]))
)
app.add_middleware(SessionMiddleware, secret_key="not a secret: a test's")


@app.get("/", response_class=PlainTextResponse)
def home() -> str:
    return "home"


@app.get("/plant", response_class=PlainTextResponse)
def plant(request: Request) -> str:
    request.session["planted"] = "yes"
    return "planted"


@app.get("/whoami")
def whoami(_: Annotated[SignedIn, Depends(signed_in)], request: Request) -> dict[str, Any]:
    return {"session": request.session}


@app.get("/members", response_class=PlainTextResponse)
def members(user: Annotated[SignedIn, Depends(signed_in_or_redirect("/"))]) -> str:
    return user.messenger_name


@app.get("/anybody")
def anybody(request: Request) -> dict[str, Any]:
    return {"somebody": current_identity(request) is not None, "session": request.session}
