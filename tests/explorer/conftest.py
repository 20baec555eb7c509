"""The explorer, built and opened from disk in Chromium."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.explorer.build import FETCH, build
from tools.npm import ESBUILD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page."""
    if problem := ESBUILD.missing(FETCH):
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("explorer")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium, without a window.

    It ends with the module: until then Playwright has an event loop in this thread, and a test of another
    module that calls asyncio.run() fails.
    """
    api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("there is neither Chromium nor Chrome: run tools/chromium")
    arguments = [] if os.geteuid() else ["--no-sandbox"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> "Iterator[tuple[Page, list[str]]]":
    """A tab of the browser, and what goes wrong in it: errors, and requests to another host."""
    page = browser.new_page()
    page.set_default_timeout(10_000)
    problems = list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if _is_local(request.url) else problems.append(request.url))
    yield page, problems
    page.close()


@pytest.fixture
def page(tab: "tuple[Page, list[str]]", built: Path) -> "Iterator[Page]":
    """The explorer as it is opened first, in which nothing goes wrong."""
    page, problems = tab
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{built.as_uri()}/index.html")
    yield page
    assert not problems


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:"))
