// Updates the first page of the session list from server-sent events. Unchanged rows stay in place, so focus and
// selection stay too. While the page is hidden or paused, the stream is closed: browsers open only a few connections to
// a server.

const AGAIN_MS = 30_000;
const SAY_AFTER_MS = 1_500;

const body = document.getElementById("session-rows");
const region = document.getElementById("sessions");
const older = document.getElementById("older");
const state = document.getElementById("live-state");
const news = document.getElementById("live-news");
const pause = document.getElementById("live-pause");

let source = null;
let version = body.dataset.version;
let paused = false;
let signedOut = false;
let retry = 0;
let saying = 0;

/** The ids of new and changed sessions that have not been announced yet. */
const fresh = new Set();
const changed = new Set();

/** Return the text of a row without its relative times, which change by themselves. */
function textOf(row) {
  const copy = row.cloneNode(true);
  for (const time of copy.querySelectorAll("time.ago")) time.replaceWith(time.dateTime);
  return copy.textContent;
}

/** The original text of each row, by session id. Scripts change rows afterwards. */
const shown = new Map();
for (const row of body.children) remember(row);

function remember(row) {
  shown.set(row.dataset.session ?? "", { row, text: textOf(row) });
}

function say(sentence, isLive = false) {
  state.textContent = sentence;
  state.hidden = false;
  state.classList.toggle("on", isLive);
}

/** Let screen readers announce a sentence. */
function announce(sentence) {
  news.textContent = sentence;
}

function announceSoon() {
  clearTimeout(saying);
  saying = setTimeout(() => {
    const parts = [];
    if (fresh.size) parts.push(`${fresh.size} new session${fresh.size === 1 ? "" : "s"}`);
    if (changed.size) parts.push(`${changed.size} session${changed.size === 1 ? "" : "s"} changed`);
    if (parts.length) announce(`${parts.join(", ")}.`);
    fresh.clear();
    changed.clear();
  }, SAY_AFTER_MS);
}

function mark(row) {
  const badge = document.createElement("span");
  badge.className = "badge good new";
  badge.textContent = "new";
  row.classList.add("new");
  row.firstElementChild.append(" ", badge);
}

function unmark(row) {
  row.classList.remove("new");
  row.querySelector(".badge.new")?.remove();
}

/** Replace the current rows with those that arrived. */
function replaceRows(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const arrived = [...template.content.children];
  const isKnown = (row) => row.dataset.session && shown.has(row.dataset.session);
  // Rows that move up from the next page, when a filter drops others, come after all known rows and are not new.
  const lastKnown = arrived.findLastIndex(isKnown);
  const isNew = (row, place) => row.dataset.session && !isKnown(row) && (place < lastKnown || lastKnown < 0);
  const isFresh = arrived.map(isNew);
  if (isFresh.includes(true)) for (const row of body.querySelectorAll("tr.new")) unmark(row);

  const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
  const focusedId = focused?.dataset.session;
  const rows = arrived.map((row, place) => {
    const before = shown.get(row.dataset.session ?? "");
    const text = textOf(row);
    if (before?.text === text) return before.row;
    if (isFresh[place]) fresh.add(row.dataset.session);
    else if (before && row.dataset.session && !fresh.has(row.dataset.session)) changed.add(row.dataset.session);
    shown.set(row.dataset.session ?? "", { row, text });
    if (isFresh[place] || before?.row.classList.contains("new")) mark(row);
    return row;
  });
  const kept = new Set(rows);
  for (const [id, { row }] of shown) if (!kept.has(row)) shown.delete(id);
  for (const row of [...body.children]) if (!kept.has(row)) row.remove();
  let place = body.firstElementChild;
  for (const row of rows) {
    if (row === place) place = place.nextElementSibling;
    else body.insertBefore(row, place);
  }
  if (focused && !focused.isConnected) {
    const target = shown.get(focusedId)?.row.querySelector("a") ?? region;
    target.focus({ preventScroll: true });
  }
  announceSoon();
}

function show(event) {
  if (event.lastEventId === version) return;
  version = event.lastEventId;
  const data = JSON.parse(event.data);
  replaceRows(data.rows);
  older.hidden = !data.older;
  if (data.older) older.href = data.older;
}

function isWanted() {
  return !paused && !signedOut && document.visibilityState === "visible";
}

function close() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function open() {
  close();
  if (!isWanted()) return;
  source = new EventSource(body.dataset.live);
  source.addEventListener("open", () => say("Live: changes appear automatically.", true));
  source.addEventListener("rows", show);
  source.addEventListener("signed-out", () => {
    signedOut = true;
    stop("You are signed out. Reload the page to sign in again.");
  });
  source.addEventListener("project-gone", () => stop("This project was deleted. Reload the page."));
  source.addEventListener("error", () => {
    // In state CONNECTING, the browser retries by itself. In state CLOSED, the stream was refused and it does not retry.
    const refused = source?.readyState === EventSource.CLOSED;
    tell(refused ? "Live updates are off. Reload the page to see changes." : "Connection lost. Reconnecting…");
    if (refused) retry = setTimeout(open, AGAIN_MS);
  });
}

function stop(sentence) {
  close();
  paused = true;
  pause.hidden = true;
  tell(sentence);
}

/** Show and announce a sentence, unless it is already shown. */
function tell(sentence) {
  if (state.textContent === sentence) return;
  say(sentence);
  announce(sentence);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Resume updates" : "Pause updates";
  if (paused) close();
  else open();
  if (paused) say("Paused.");
});
document.addEventListener("visibilitychange", () => (isWanted() ? open() : close()));
// A page that the browser keeps for Back must not hold its connection.
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => event.persisted && open());
open();
