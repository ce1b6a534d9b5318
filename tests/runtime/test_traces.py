"""Traces that cannot be recorded are refused with a sentence instead of being dropped silently."""

import sys

import pytest

from taproof.config.settings import load_settings
from taproof.runtime.traces import TracesUnavailable, open_traces


async def test_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the start is refused, and the sentence says what to install."""
    monkeypatch.delitem(sys.modules, "taproof.tracing.provider", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracesUnavailable, match=r"pip install 'taproof\[server,otel\]'"):
        async with open_traces(load_settings({"traces": "link"})):
            pass


async def test_an_invalid_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An OTEL_ variable that cannot be used stops the start, and the sentence says why."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with pytest.raises(TracesUnavailable, match="max_queue_size"):
        async with open_traces(load_settings({"traces": "link"})):
            pass


async def test_malformed_headers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A malformed OTEL_EXPORTER_OTLP_HEADERS is logged without its value, which may be the receiver's key."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "canary")
    async with open_traces(load_settings({"traces": "link"})):
        pass
    assert "Header format invalid" in caplog.text
    assert "canary" not in caplog.text
