// taproof/react where there is no browser: it can be imported and rendered on a server. tests/slow/sdk_js/test_react.py has it
// in Chromium.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createElement, StrictMode } from "react";
import { renderToString } from "react-dom/server";

import { TaproofButton, useTaproof } from "../src/react/index.js";

/** @typedef {any} Any */

test("the button is rendered as its element, with nothing of the callbacks", () => {
  const props = {
    projectId: "proj_1",
    baseUrl: "https://signin.example.com",
    submitUrl: "/auth/taproof?next=/a&b",
    label: 'Sign "in"',
    className: "wide",
    id: "x",
    onStatus: () => assert.fail("called"),
    onSignedIn: () => assert.fail("called"),
  };
  assert.equal(
    renderToString(createElement(StrictMode, null, createElement(TaproofButton, props))),
    '<taproof-button id="x" class="wide" label="Sign &quot;in&quot;" project-id="proj_1"'
    + ' base-url="https://signin.example.com" submit-url="/auth/taproof?next=/a&amp;b"></taproof-button>',
  );
});

test("the hook is idle on a server", () => {
  const Page = () => {
    const { status, link, qr, result, error, start, cancel } = useTaproof({ projectId: "proj_1", baseUrl: "https://a.b" });
    return JSON.stringify([status, link, qr, result, error, typeof start, typeof cancel]);
  };
  const rendered = renderToString(createElement(Page)).replaceAll("&quot;", '"');
  assert.deepEqual(JSON.parse(rendered), ["idle", null, null, null, null, "function", "function"]);
});

test("without a browser nothing is started by importing", async () => {
  assert.equal(/** @type {Any} */ (globalThis).window, undefined);
  assert.equal(/** @type {Any} */ (globalThis).customElements, undefined);
});
