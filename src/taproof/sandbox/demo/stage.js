// The page of the demo: a shop and a phone side by side. The shop reports its calls and events (shop.js). This script
// opens the shop's sign-in link on the phone, as a person does who scans a QR code, and shows what happens.

import { calledStep, isWait, showAnswer, stepElement } from "./steps.js";

const element = (id) => document.getElementById(id);
const shop = element("shop");
const phone = element("phone");
const narrow = matchMedia("(max-width: 59.99rem)");
const GUIDES = {
  idle: "Press the button in the shop.",
  starting: "The phone opens the link.",
  pending: "Tap Confirm on the phone.",
  retrying: "The service cannot be reached. Is it still running?",
  confirmed: "Confirmed. The shop’s server checks the proof.",
  done: "Signed in. The proof is valid.",
  cancelled: "You tapped Cancel, so nobody is signed in. Press the button to try again.",
  expired: "The sign-in expired after ten minutes. Press the button to start again.",
  used: "Another window received this sign-in. Press the button to start again.",
  aborted: "You closed the sign-in. Press the button to start again.",
  error: "The sign-in failed. What happens shows why.",
};

/** The events of the button that get a row, by their value. */
const EVENTS = {
  opened: "Shows that the link is open",
  choosing: "Shows which number to choose",
  phone_asked: "Shows that the phone number is asked for",
  unreachable: "Shows that this user has blocked the bot",
  confirmed: "You confirmed",
  cancelled: "Shows that you cancelled",
  expired: "Shows that the sign-in expired",
  used: "Shows that another window signed in",
  aborted: "You closed the panel",
  retrying: "Shows that there is no connection",
};

/** When the current sign-in began. */
let began = 0;
/** The rows of the calls that have no answer yet, by id. */
const open = new Map();
/** The row of the last call that waited for the user's decision, without one. */
let waited = null;
let matchCode = null;
/** Whether the next page of the shop is the one that the sign-in leads to. */
let isArriving = false;

// ---- what the shop reports

const REPORTS = {
  ready({ signedIn, returns }) {
    guide(signedIn ? "done" : "idle");
    if (signedIn && isArriving && narrow.matches) {
      setOpen("phone", false);
    }
    isArriving &&= !signedIn;
    if (returns) {
      begin();
    }
  },
  call(call) {
    if (/\/generate\/public$/.test(call.path)) {
      begin();
    }
    if (isWait(call)) {
      waited?.remove();
      waited = null;
    }
    const step = stepElement(elapsed(), calledStep(call));
    open.set(call.id, step);
    add(step);
  },
  answer(call) {
    const step = open.get(call.id);
    open.delete(call.id);
    if (!step) {
      return;
    }
    if (isWait(call) && call.answer?.status === "pending") {
      waited = step;
    }
    showAnswer(step, call);
    if (call.path === "/demo/session" && call.method === "POST" && call.status === 200) {
      isArriving = true;
      add(stepElement(elapsed(), checkedStep(call)));
    }
  },
  link({ deeplink, matchCode: shown }) {
    matchCode = shown;
    add(stepElement(elapsed(), { who: "phone", text: "Opens the link", code: "…?start=<session_token>" }));
    setOpen("phone", true);
    phone.contentWindow.postMessage({ open: deeplink }, location.origin);
  },
  show() {
    setOpen("phone", true);
  },
  returned({ error }) {
    const code = error ? `/demo?error=${error}&state=…&iss=…` : "/demo?code=…&state=…&iss=…";
    add(stepElement(elapsed(), { who: "taproof", text: "Sends you back to the shop", code }));
  },
  event({ name, value }) {
    // Other endings than a closed panel have been reported as a status before.
    if (name === "taproof-ended" && value !== "aborted") {
      return;
    }
    if (name !== "taproof-hint") {
      guide(value);
    }
    if (Object.hasOwn(EVENTS, value)) {
      const who = value === "confirmed" ? "phone" : "event";
      add(stepElement(elapsed(), { who, text: EVENTS[value], code: `${name}: ${value}` }));
    }
  },
  failed({ sentence }) {
    guide("error");
    add(stepElement(elapsed(), { who: "event", text: sentence, code: "taproof-error" }));
  },
};

addEventListener("message", ({ origin, source, data }) => {
  if (origin === location.origin && source === shop.contentWindow && Object.hasOwn(REPORTS, data?.kind)) {
    REPORTS[data.kind](data);
  }
});

/** The step in which the shop's server checks what the page sent. */
function checkedStep({ sent }) {
  const isProof = "proof" in sent;
  return {
    who: "server",
    text: `Checks the ${isProof ? "proof" : "ID token"} without a call`,
    code: isProof ? "verify_proof(proof, webhook_secret)" : "jwt.decode(id_token, key)",
    result: "valid",
    claims: sent.proof ?? sent.id_token,
  };
}

// ---- display

function begin() {
  began = performance.now();
  waited = null;
  open.clear();
  element("steps").replaceChildren();
}

const elapsed = () => (began ? performance.now() - began : 0);

function add(step) {
  element("nothing-yet").hidden = true;
  element("steps").append(step);
  element("drawer-body").scrollTop = element("drawer-body").scrollHeight;
}

function guide(state) {
  const text = state === "pending" && matchCode ? `Tap ${matchCode} on the phone.` : GUIDES[state];
  element("guide").dataset.state = state;
  if (element("guide").textContent !== text) {
    element("guide").textContent = text;
  }
}

/** Open or close the phone or the drawer. On a narrow screen, each is a sheet above the shop, and only one is open. */
function setOpen(name, isOpen) {
  element(`${name}-toggle`).setAttribute("aria-expanded", String(isOpen));
  element(name === "phone" ? "phone-panel" : "drawer").dataset.open = isOpen ? "yes" : "no";
  // A closed part cannot be reached with the keyboard.
  element(name === "phone" ? "phone" : "drawer-body").inert = !isOpen;
  if (isOpen && narrow.matches) {
    setOpen(name === "phone" ? "drawer" : "phone", false);
  }
}

const isOpen = (name) => element(`${name}-toggle`).getAttribute("aria-expanded") === "true";

for (const name of ["phone", "drawer"]) {
  element(`${name}-toggle`).addEventListener("click", () => setOpen(name, !isOpen(name)));
}
function fit() {
  setOpen("phone", !narrow.matches);
  setOpen("drawer", !narrow.matches);
}
narrow.addEventListener("change", fit);
fit();
guide("idle");
element("url").textContent = `${location.host}/demo/shop`;
// The OpenID provider sends the user back to this page. The shop takes the code, which must not stay in the address.
shop.src = `/demo/shop${location.search}`;
history.replaceState(null, "", "/demo");
