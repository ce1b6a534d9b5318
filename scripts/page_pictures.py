"""Take pictures of every page for a review of the design: `make screenshots ARGS=pages`.

Each page is taken as a whole, at the widths of a desktop and of a phone, light and dark. The pictures are in
build/pages/NAME-WIDTH-SCHEME.png and are not part of the documentation. A page that is wider than the screen is named.
"""

import asyncio
import re
from pathlib import Path
from typing import Any, Final

from playwright.async_api import BrowserContext, Page

PAGES: Final = Path(__file__).parent.parent / "build" / "pages"
CREATED: Final = "created"
"""The page after a project was created, which only a form leads to."""


def page_paths(project_id: str, empty_id: str, ids: dict[str, Any]) -> dict[str, str]:
    """Return the paths of the pages by name: those of a busy project, of an empty one, and all others."""
    project, empty = (f"/console/projects/{each}" for each in (project_id, empty_id))
    user, client, session, event = (ids[name] for name in ("user", "client", "session", "event"))
    return {
        "demo": "/demo",
        "shop": "/demo/shop",
        "phone": "/sandbox/phone",
        "docs": "/docs",
        "projects": "/console/projects",
        "new-project": "/console/projects/new",
        "project": project,
        "project-empty": empty,
        "try": f"{project}/try",
        "sessions": "/console/sessions",
        "sessions-of-project": f"/console/sessions?project_id={project_id}&status=used",
        "sessions-empty": f"/console/sessions?project_id={empty_id}",
        "session": f"/console/sessions/{session}",
        "users": f"{project}/users",
        "users-empty": f"{empty}/users",
        "user": f"{project}/users/{user}",
        "erase-user": f"/console/users/{user}/erase",
        "analytics": "/console/analytics?days=30",
        "analytics-empty": f"/console/analytics?project_id={empty_id}",
        "webhooks": f"{project}/webhooks",
        "webhooks-empty": f"{empty}/webhooks",
        "delivery": f"/console/deliveries/{event}",
        "clients": f"{project}/clients",
        "clients-empty": f"{empty}/clients",
        "client": f"{project}/clients/{client}",
        "members": f"{project}/members",
        "settings": f"{project}/settings",
        "settings-danger": f"{project}/settings#delete",
        "tokens": "/console/tokens",
        "audit": "/console/audit",
        "team": "/console/team",
        "account": "/console/account",
        "join": "/console/join",
        "not-found": "/console/nothing",
    }


async def take_page_pictures(contexts: dict[str, BrowserContext], paths: dict[str, str]) -> None:
    """Take each page in each context, whose names end the names of the pictures."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for suffix, context in contexts.items():
        page = await context.new_page()
        for name, path in paths.items():
            await page.goto(path)
            await _take(page, f"{name}-{suffix}")
        await page.goto("/console/projects/new")
        await page.get_by_label("Name", exact=True).fill("Paper Kite")
        await page.get_by_role("button", name="Create the project").click()
        await page.wait_for_url(re.compile(r"/projects/proj_|/projects$"))
        await _take(page, f"{CREATED}-{suffix}")
        await page.close()


async def _take(page: Page, name: str) -> None:
    await page.wait_for_load_state("load")
    await asyncio.sleep(0.3)  # The phone and the demo draw themselves after they have loaded.
    await page.screenshot(path=PAGES / f"{name}.png", full_page=True)
    width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    print(f"build/pages/{name}.png{f': {width} px too wide' if width > 0 else ''}")
