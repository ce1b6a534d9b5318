// The rows of the drawer. Text from the service or from people is only set as textContent.

const WHO = {
  page: "Page → Taproof",
  shop: "Page → shop",
  server: "Shop’s server",
  phone: "Phone",
  taproof: "Taproof",
  event: "Button",
};
/** Longest value that is shown whole; tokens and proofs are longer. */
const SHOWN = 28;

const CALLS = [
  [/\/generate\/public$/, "page", "Asks for a session"],
  [/\/verify\/public$/, "page", "Waits for your decision"],
  [/\/cancel\/public$/, "page", "Cancels the session"],
  [/\/oidc\/token$/, "page", "Exchanges the code for an ID token"],
  [/^\/demo\/session$/, "shop", "Sends the proof"],
];

/** Describe a call of the shop's page. */
export function calledStep({ method, path, sent }) {
  const [, who, text] = CALLS.find(([pattern]) => pattern.test(path)) ?? [null, "page", "Calls the service"];
  const special = (method === "DELETE" && "Signs out") || (sent?.id_token && "Sends the ID token");
  return { who, text: special || text, code: `${method} ${path}`, sent };
}

/** Return whether a call waits for the user's decision. */
export const isWait = (call) => call.path.endsWith("/verify/public");

/** Build a row. `ms`: the time since the sign-in began. `claims`: a JWT whose content is shown. */
export function stepElement(ms, { who, text, code, result, sent, claims }) {
  const line = make("div", "line", make("span", "time", `${(ms / 1_000).toFixed(1)} s`), make("span", "who", WHO[who]));
  line.append(make("span", "text", text), make("code", "code", code));
  const row = make("li", "", line);
  row.dataset.who = who;
  row.sent = sent;
  if (result) {
    line.append(make("code", "result", result));
  }
  if (claims) {
    expandable(row, claimsOf(claims));
  }
  return row;
}

/** Add the answer of a call to its row. */
export function showAnswer(row, { status, answer }) {
  const said = answer?.error ?? answer?.status;
  const result = make("code", "result", status ? `${status}${said ? ` ${said}` : ""}` : "no answer");
  result.dataset.ok = status >= 200 && status < 300 ? "yes" : "no";
  row.querySelector(".line").append(result);
  const whole = [row.sent, answer].filter(Boolean).map((each) => JSON.stringify(each, shorten, 2));
  if (whole.length) {
    expandable(row, whole.join("\n\n"));
  }
}

/** Let a row show a text when it is clicked. */
function expandable(row, text) {
  const body = make("pre", "", text);
  body.tabIndex = 0;
  body.setAttribute("role", "group");
  body.setAttribute("aria-label", "Content");
  const line = row.querySelector(".line");
  row.replaceChildren(make("details", "", make("summary", "", ...line.children), body));
  row.querySelector("summary").classList.add("line");
}

/** Return the claims of a JWT for display. Only the server can verify them. */
function claimsOf(token) {
  const payload = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
  return JSON.stringify(JSON.parse(new TextDecoder().decode(bytes)), shorten, 2);
}

function shorten(_, value) {
  const isLong = typeof value === "string" && value.length > SHOWN && !/\s/.test(value);
  return isLong ? `${value.slice(0, SHOWN / 2)}…` : value;
}

function make(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) {
    made.className = className;
  }
  made.append(...content);
  return made;
}
