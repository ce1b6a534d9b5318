// Signs a user in, as an application's page does: ask the service for a session, show its link, poll until the user
// decides, and send the proof to the application's own backend. The second button signs the user in with OpenID Connect:
// see openid.js. The rest is display.

import { beginSignIn, claimsOf, findRequest, redeemCode, takeResponse } from "./openid.js";

const POLL_INTERVAL = 2_000;
/** How long one call waits for the user's decision, in seconds: see docs/reference/long-poll.md. */
const WAIT = 25;
const POLLING_DEADLINE = 10 * 60_000;
const REQUEST_TIMEOUT = 10_000;

const TEXTS = {
  pending: "Waiting for you to confirm in the messenger.",
  cancelled: "You cancelled this sign-in in the messenger. Nothing was shared.",
  expired: "This sign-in has expired: ten minutes passed without a decision.",
  used: "This sign-in has already been used, perhaps in another window. Start a new one.",
};

const KINDS = {
  proof: {
    contents: "What the proof contains",
    verifiedBy: "Only the backend, which has the webhook secret, can verify it.",
  },
  id_token: {
    contents: "What the ID token contains",
    verifiedBy: "The backend verifies it with the service's public keys, from /oidc/jwks.",
  },
};

const { projectId, issuer, clientId } = document.body.dataset;
const element = (id) => document.getElementById(id);

/** The current sign-in, or null. Answers for an older one are dropped. */
let attempt = null;

// ---- calls to the service and to the application's backend

/** A request that failed. `temporary`: the same request may succeed in a moment. */
class RequestFailed extends Error {
  constructor(sentence, { temporary = false, wait = 0 } = {}) {
    super(sentence);
    this.temporary = temporary;
    this.wait = wait;
  }
}

async function request(method, path, body, signal) {
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body ? { "Content-Type": "application/json" } : {},
      body: body ? JSON.stringify(body) : undefined,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    if (response.ok) {
      return response.headers.get("Content-Type").startsWith("image/") ? await response.blob() : await response.json();
    }
  } catch {
    throw new RequestFailed("The service cannot be reached. Check the connection.", { temporary: true });
  }
  const { error } = await response.json().catch(() => ({}));
  throw new RequestFailed(error ?? `The service returned status ${response.status}.`, {
    temporary: response.status === 429 || response.status >= 500,
    wait: 1_000 * (Number(response.headers.get("Retry-After")) || 0),
  });
}

// ---- the sign-in

async function signIn() {
  // A tab opened after an await counts as a pop-up and is blocked, so the tab is opened now and gets its address later.
  const tab = window.open("", "_blank");
  if (tab) {
    tab.opener = null;
    tab.document.title = "Opening your messenger…";
  }
  stopWaiting();
  const controller = new AbortController();
  const current = { controller, sessionToken: "", deadline: performance.now() + POLLING_DEADLINE, polls: 0 };
  attempt = current;
  showStarting();
  try {
    const created = await request("POST", "/api/v1/generate/public", { project_id: projectId }, controller.signal);
    if (!/^(https?|tg):\/\//.test(created.deeplink)) {
      throw new RequestFailed("The service returned a link that this page does not open.");
    }
    if (current !== attempt) {
      tab?.close();
      return;
    }
    current.sessionToken = created.session_token;
    addStep("The page asked the service for a session and got its token and link.", "POST /api/v1/generate/public");
    showWaiting(created.deeplink, created.match_code);
    if (created.match_code) {
      // The messenger will ask which code this page shows, so the page stays in front until the user has read it.
      tab?.close();
      addStep("The project asks for a match code, which only this page shows.", `match_code: ${created.match_code}`);
    } else if (tab && !tab.closed) {
      tab.location.replace(created.deeplink);
    }
    addStep("You open the link in the messenger, and the bot asks you to confirm.", "…?start=<session_token>");
    current.pollStep = addStep("The page waits for the service's response.", "POST /api/v1/verify/public");
    poll(current);
    showQrCode(current, created.deeplink);
  } catch (error) {
    tab?.close();
    if (current === attempt) {
      stop("error", error.message);
    }
  }
}

async function poll(current) {
  clearTimeout(current.timer);
  if (current !== attempt || current.polling || !current.sessionToken) {
    return;
  }
  current.polling = true;
  let wait = POLL_INTERVAL;
  try {
    const body = { project_id: projectId, session_token: current.sessionToken, wait: WAIT };
    const asked = performance.now();
    const answer = await request("POST", "/api/v1/verify/public", body, current.controller.signal);
    if (current !== attempt) {
      return;
    }
    current.polls += 1;
    current.pollStep.textContent = `POST /api/v1/verify/public → ${answer.status} (asked ${times(current.polls)})`;
    if (answer.status === "confirmed") {
      stopWaiting();
      addStep("You confirmed. This one response contained your identity and the proof.", "status: confirmed, proof: eyJ…");
      await handOver(
        "proof",
        answer.proof,
        "The application's own backend checked the proof with its webhook secret, without any call, and set its own cookie.",
        "POST /demo/session → verify_proof(proof, webhook_secret, project_id=…)",
      );
      return;
    }
    if (answer.status !== "pending") {
      if (!(answer.status in TEXTS)) {
        throw new RequestFailed("The service returned an unknown status.");
      }
      stop(answer.status, TEXTS[answer.status]);
      return;
    }
    showStatus("pending", TEXTS.pending);
    if (performance.now() - asked >= (WAIT - 1) * 1_000) {
      wait = 0; // The service waited. It answers early if too many calls wait; then the page polls every 2 seconds.
    }
  } catch (error) {
    if (current !== attempt) {
      return;
    }
    if (!error.temporary) {
      stop("error", error.message);
      return;
    }
    showStatus("pending", `${error.message} Trying again…`);
    wait = Math.max(wait, error.wait);
  } finally {
    current.polling = false;
  }
  if (performance.now() >= current.deadline) {
    stop("expired", TEXTS.expired);
    return;
  }
  current.timer = setTimeout(poll, wait, current);
}

/** Send the proof or the ID token to the backend. The page trusts the identity only after the backend has checked it. */
async function handOver(kind, token, ...step) {
  showOnly(null);
  showStatus("confirmed", `Confirmed. Checking the ${kind === "proof" ? "proof" : "ID token"}…`);
  showClaims(kind, token);
  try {
    const identity = await request("POST", "/demo/session", { [kind]: token });
    addStep(...step);
    showStatus("confirmed", "You are signed in.");
    showSignedIn(identity);
    element("who").focus();
  } catch (error) {
    stop("error", error.message);
  }
}

// ---- the sign-in with OpenID Connect

async function signInWithOpenid() {
  stopWaiting();
  showStarting();
  try {
    await beginSignIn(issuer, clientId);
  } catch (error) {
    stop("error", error.message, "sign-in-openid");
  }
}

/** Go on where `signInWithOpenid` ended: the service has sent the user back to this page, with a code or an error. */
async function finishSignInWithOpenid(response) {
  showStarting();
  let idToken;
  try {
    const begun = findRequest(response, issuer);
    addStep(
      "The page made a code verifier, a state and a nonce, kept them in this tab, and sent you to the service.",
      "GET /oidc/authorize?response_type=code&client_id=…&state=…&nonce=…&code_challenge=…",
    );
    if (response.has("code")) {
      addStep("You confirmed, and the service sent you back with a code.", "/demo?code=…&state=…&iss=…");
    } else {
      addStep("The service sent you back with an error.", `/demo?error=${response.get("error")}&state=…&iss=…`);
    }
    idToken = await redeemCode(response, begun, issuer, clientId);
  } catch (error) {
    stop(error.cancelled ? "cancelled" : "error", error.message, "sign-in-openid");
    return;
  }
  addStep(
    "The page checked state and iss, exchanged the code and its code verifier for an ID token, and checked the nonce.",
    "POST /oidc/token → id_token: eyJ…",
  );
  await handOver(
    "id_token",
    idToken,
    "The application's own backend checked the ID token with the service's public keys, and set its own cookie.",
    "POST /demo/session → jwt.decode(id_token, key, audience=client_id, issuer=…)",
  );
}

async function signOut() {
  try {
    await request("DELETE", "/demo/session");
  } catch (error) {
    showStatus("error", error.message);
    return;
  }
  clearSteps();
  showSignInButtons("Sign in");
  showStatus("idle", "You are signed out.");
}

function stopWaiting() {
  clearTimeout(attempt?.timer);
  clearInterval(attempt?.countdown);
  attempt?.controller.abort();
  attempt = null;
}

function stop(status, text, again = "sign-in") {
  stopWaiting();
  showSignInButtons(again === "sign-in" ? "Try again" : "Sign in", again);
  showStatus(status, text);
}

// ---- display; text from other people is only set as textContent

function showStatus(status, text) {
  const line = element("status");
  line.dataset.status = status;
  // Setting the same text again would make a screen reader repeat it every 2 seconds.
  if (line.textContent !== text) {
    line.textContent = text;
  }
}

function showOnly(id) {
  for (const part of ["start", "waiting", "signed-in"]) {
    element(part).hidden = part !== id;
  }
}

function showStarting() {
  clearSteps();
  showOnly("start");
  disableButtons(true);
  showStatus("starting", "Starting…");
}

function showSignInButtons(label, focused = "sign-in") {
  element("sign-in").textContent = label;
  disableButtons(false);
  showOnly("start");
  element(focused).focus();
}

function disableButtons(disabled) {
  for (const id of ["sign-in", "sign-in-openid"]) {
    element(id).disabled = disabled;
  }
}

function showWaiting(deeplink, matchCode) {
  const current = attempt;
  element("match").hidden = !matchCode;
  element("match-code").textContent = matchCode ?? "";
  element("deeplink").href = deeplink;
  element("qr").closest("figure").hidden = true;
  showOnly("waiting");
  showStatus("pending", TEXTS.pending);
  showRemaining(current);
  current.countdown = setInterval(showRemaining, 1_000, current);
  element("deeplink").focus();
}

function showRemaining({ deadline }) {
  const seconds = Math.max(0, Math.ceil((deadline - performance.now()) / 1_000));
  element("remaining").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
}

async function showQrCode(current, deeplink) {
  // The link works without the QR code, so a failure is not shown.
  const picture = await request("POST", "/demo/qr", { deeplink }, current.controller.signal).catch(() => null);
  if (picture && current === attempt) {
    const image = element("qr");
    URL.revokeObjectURL(image.src);
    image.src = URL.createObjectURL(picture);
    image.closest("figure").hidden = false;
  }
}

function showSignedIn({ messenger_id, messenger_name, messenger_username, messenger_phone }) {
  element("who-name").textContent = messenger_name;
  element("who-username").textContent = messenger_username ? `@${messenger_username}` : "";
  element("who-id").textContent = messenger_id;
  element("who-phone").hidden = !messenger_phone;
  element("who-number").textContent = messenger_phone ?? "";
  showOnly("signed-in");
}

function addStep(text, code) {
  const item = document.createElement("li");
  const detail = document.createElement("code");
  detail.textContent = code;
  item.append(text, detail);
  element("steps").append(item);
  element("nothing-yet").hidden = true;
  return detail;
}

function clearSteps() {
  element("steps").replaceChildren();
  element("nothing-yet").hidden = false;
  element("contents").hidden = true;
}

function showClaims(kind, token) {
  try {
    element("claims").textContent = JSON.stringify(claimsOf(token), null, 2);
    element("contents-of").textContent = KINDS[kind].contents;
    element("verified-by").textContent = KINDS[kind].verifiedBy;
    element("contents").hidden = false;
  } catch {
    // Only the backend's check counts; it follows.
  }
}

const times = (count) => (count === 1 ? "once" : `${count} times`);

// ---- start

element("sign-in").addEventListener("click", signIn);
element("start-again").addEventListener("click", signIn);
element("sign-in-openid").addEventListener("click", signInWithOpenid);
element("sign-in-openid").hidden = !clientId;
element("sign-out").addEventListener("click", signOut);
document.addEventListener("visibilitychange", () => {
  // Browsers slow down timers in hidden tabs. A user who returns from the messenger should not wait for them.
  if (document.visibilityState === "visible" && attempt) {
    poll(attempt);
  }
});
addEventListener("pageshow", (event) => {
  // Someone who leaves the service's page with the Back button sees this page as it was: starting.
  if (event.persisted) {
    location.reload();
  }
});
const response = takeResponse();
if (response) {
  await finishSignInWithOpenid(response);
} else if (document.body.dataset.signedIn === "yes") {
  try {
    showSignedIn(await request("GET", "/demo/session"));
    showStatus("idle", "You are signed in.");
  } catch (error) {
    showStatus("error", error.message);
  }
}
