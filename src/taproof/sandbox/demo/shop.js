// The shop's page. A real shop needs none of this: the button signs the user in by itself. This script reports each
// call and event to the demo's page around the shop, opens the link on the phone there, signs out, and signs in with
// OpenID Connect: see openid.js.

import { beginSignIn, findRequest, redeemCode, takeResponse } from "./openid.js";

const { issuer, clientId, signedIn } = document.body.dataset;
const isFramed = parent !== window;
const element = (id) => document.getElementById(id);

/** Report to the page around the shop. Opened by itself, the shop reports nothing. */
const tell = (kind, detail) => isFramed && parent.postMessage({ kind, ...detail }, location.origin);

// ---- report the calls of this page

const plainFetch = globalThis.fetch;
let calls = 0;

globalThis.fetch = async (address, options = {}) => {
  calls += 1;
  const { pathname: path } = new URL(address, location.href);
  const call = { id: calls, method: options.method ?? "GET", path, sent: readable(options.body) };
  tell("call", call);
  try {
    const response = await plainFetch(address, options);
    const answer = await response.clone().json();
    tell("answer", { ...call, status: response.status, answer });
    if (answer.deeplink) {
      tell("link", { deeplink: answer.deeplink, matchCode: answer.match_code ?? null });
    }
    return response;
  } catch (error) {
    tell("answer", { ...call, status: 0, answer: null });
    throw error;
  }
};

function readable(body) {
  return typeof body === "string" ? JSON.parse(body) : Object.fromEntries(body ?? []);
}

for (const name of ["taproof-status", "taproof-hint", "taproof-ended"]) {
  addEventListener(name, ({ detail }) => tell("event", { name, value: detail.status ?? detail.hint }));
}
addEventListener("taproof-error", ({ detail }) => tell("failed", { sentence: detail.error.message }));

// ---- the link opens on the phone beside the shop, not in a new tab

if (isFramed) {
  const plainOpen = globalThis.open;
  globalThis.open = (address, ...others) => {
    const isLink = new URL(address, location.href).searchParams.has("start");
    // The page around the shop has already opened it.
    return isLink ? tell("show", {}) : plainOpen(address, ...others);
  };
  addEventListener("click", (event) => {
    const link = event.composedPath().find((each) => each.href?.includes("?start="));
    if (link) {
      event.preventDefault();
      tell("show", {});
    }
  });
}

// ---- OpenID Connect

function say(status, text) {
  element("status").dataset.status = status;
  element("status").textContent = text;
}

async function signInWithOpenid() {
  element("sign-in-openid").disabled = true;
  try {
    await beginSignIn(issuer, clientId);
  } catch (error) {
    fail(error);
  }
}

/** Continue where `signInWithOpenid` ended: the service has sent the user back, with a code or an error. */
async function finishSignInWithOpenid(response) {
  say("starting", "Signing in…");
  try {
    const request = findRequest(response, issuer);
    tell("returned", { error: response.get("error") });
    const idToken = await redeemCode(response, request, issuer, clientId);
    const answer = await fetch("/demo/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ id_token: idToken }),
    });
    const { error } = await answer.json();
    if (error) {
      throw new Error(error);
    }
    location.replace("/demo/shop");
  } catch (error) {
    fail(error);
  }
}

function fail(error) {
  element("sign-in-openid").disabled = false;
  element("sign-in-openid").focus();
  say(error.cancelled ? "cancelled" : "error", error.message);
  tell("failed", { sentence: error.message });
}

// ---- start

element("sign-in-openid").addEventListener("click", signInWithOpenid);
element("sign-out").addEventListener("click", async () => {
  try {
    await fetch("/demo/session", { method: "DELETE" });
    location.reload();
  } catch {
    element("sign-out").textContent = "No connection. Try again";
  }
});
const response = takeResponse();
tell("ready", { signedIn: signedIn === "yes", returns: response !== null });
if (response) {
  await finishSignInWithOpenid(response);
}
