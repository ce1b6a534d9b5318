// The page of tests/slow/sdk_js/test_react.py: `?hook` or `?button`, in StrictMode, with what happened on `window.heard`.

import { createElement as h, StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { TaproofButton, useTaproof } from "../src/react/index.js";

/** @typedef {any} Any */

const query = new URLSearchParams(location.search);
const baseUrl = query.get("base") ?? "";
/** @type {Any[]} */
const heard = (/** @type {Any} */ (window).heard = []);

/** @param {{ projectId: string }} props */
function Hook({ projectId }) {
  const { status, link, qr, result, error, start, cancel } = useTaproof({ projectId, baseUrl });
  useEffect(() => void heard.push(status), [status]);
  return h(
    "section",
    null,
    h("button", { onClick: start }, "Start"),
    h("button", { onClick: cancel }, "Cancel"),
    h("button", { onClick: () => (cancel(), start()) }, "Again"),
    h("p", { id: "status" }, status),
    link && h("a", { id: "link", href: link.deeplink }, link.command),
    link?.matchCode && h("strong", { id: "match" }, link.matchCode),
    qr && h("svg", { id: "qr", viewBox: qr.viewBox, width: 300 }, h("path", { d: qr.path })),
    result && h("output", { id: "result" }, JSON.stringify(result)),
    error && h("p", { id: "error" }, error.message),
  );
}

/** @param {{ projectId: string }} props */
function Button({ projectId }) {
  const [renders, setRenders] = useState(0);
  /** @param {string} name */
  const hear = (name) => (/** @type {Any} */ detail, /** @type {Any} */ event) => {
    heard.push([name, detail, renders, event.type]);
    if (name === "signed-in") event.preventDefault();
  };
  return h(
    "section",
    null,
    h("button", { onClick: () => setRenders(renders + 1) }, `Render ${renders}`),
    h(TaproofButton, {
      projectId,
      baseUrl,
      submitUrl: query.get("submit") ?? undefined,
      label: "Come in",
      language: "en",
      className: "mine",
      style: { display: "block" },
      onStatus: hear("status"),
      onConfirmed: hear("confirmed"),
      onSignedIn: hear("signed-in"),
      onEnded: hear("ended"),
      onError: hear("error"),
    }),
  );
}

function Page() {
  const [projectId, setProjectId] = useState(query.get("project") ?? "");
  const [isThere, setIsThere] = useState(true);
  return h(
    "main",
    null,
    h("button", { onClick: () => setIsThere(!isThere) }, "Mount or unmount"),
    h("button", { onClick: () => setProjectId(query.get("other") ?? "") }, "Other project"),
    isThere && h(query.has("hook") ? Hook : Button, { projectId }),
  );
}

createRoot(/** @type {HTMLElement} */ (document.querySelector("#root"))).render(h(StrictMode, null, h(Page)));
