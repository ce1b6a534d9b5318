"""Serve the OpenAPI document, and the page that shows it."""

import json

from fastapi import FastAPI
from starlette.types import ASGIApp

from taproof.api.health import Operations
from taproof.api.openapi.document import build_openapi
from taproof.api.openapi.reference_page import STYLESHEET_PATH, docs_page, stylesheet
from taproof.http.fixed_answer import FixedAnswer


def build_documents(developer_api: FastAPI) -> ASGIApp:
    """Return the application that serves /openapi.json, /docs and its stylesheet. All routes accept GET and HEAD.

    The documents are built once, here.
    """
    document = build_openapi(developer_api)
    return Operations(
        {
            "/openapi.json": FixedAnswer(json.dumps(document, ensure_ascii=False).encode(), "application/json"),
            "/docs": docs_page(document),
            STYLESHEET_PATH: stylesheet(),
        }
    )
