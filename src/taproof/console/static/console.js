// Enhances every page: copy buttons, times, filters that close, and forms that cannot be sent twice.

const COPIED_MS = 2000;

/** Copy the text of the element that a button refers to, mark the button as done, and announce it. */
async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Without permission, or on plain HTTP: select the text, so that the user can copy it with the keyboard.
    getSelection().selectAllChildren(source);
    announce("Selected. Press Ctrl+C or Command+C to copy.");
    return;
  }
  announce("Copied.");
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), COPIED_MS);
}

const said = document.createElement("p");
said.className = "visually-hidden";
said.setAttribute("role", "status");
document.body.querySelector("main").append(said);

/** Let screen readers announce a sentence. */
function announce(sentence) {
  said.textContent = sentence;
}

/** Add the local time to the tooltip of each instant in an element. */
function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const instant = new Date(time.dateTime);
    time.dataset.local = "";
    if (Number.isNaN(instant.valueOf())) continue;
    const local = instant.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
    time.title = time.title ? `${time.title}\n${local}` : local;
  }
}

const UNITS = [[86_400_000, "day"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"]];
const TIMES_EVERY_MS = 10_000;
/** The difference between the service's clock and this device's clock, which can be wrong. */
const skew = Number(document.body.dataset.now) - Date.now();

/** Return an instant in words by the rules of `relative_time` in rendering.py; undefined if its date is shown. */
function relativeTime(instant, now) {
  const distance = Math.abs(now - instant);
  if (distance >= 30 * UNITS[0][0]) return undefined;
  if (distance < 5_000) return "now";
  let [unit, name] = UNITS.find(([each]) => distance >= each);
  let count = Math.floor(distance / unit);
  if (instant > now) {
    const rounded = Math.round(distance / unit) * unit;
    [unit, name] = UNITS.find(([each]) => rounded >= each);
    count = rounded / unit;
  }
  const words = `${count}\u00a0${name}${name === "day" && count > 1 ? "s" : ""}`;
  return instant > now ? `in ${words}` : `${words} ago`;
}

function refreshTimes() {
  if (document.visibilityState !== "visible") return;
  const now = Date.now() + skew;
  for (const time of document.querySelectorAll("time.ago")) {
    const words = relativeTime(new Date(time.dateTime).valueOf(), now);
    if (words && words !== time.textContent) time.textContent = words;
  }
}

setInterval(refreshTimes, TIMES_EVERY_MS);
document.addEventListener("visibilitychange", refreshTimes);

/** Close the open filters, except the one that contains an element. */
function closeFilters(element) {
  for (const filter of document.querySelectorAll(".filter > details[open]")) {
    if (!element || !filter.contains(element)) filter.open = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) copy(button);
  closeFilters(event.target);
});

document.addEventListener("keydown", (event) => {
  const filter = event.key === "Escape" && event.target.closest(".filter > details[open]");
  if (!filter) return;
  closeFilters();
  filter.querySelector("summary").focus();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  // Not `disabled`: the form would then omit the button's name, and the button would lose the focus.
  event.submitter?.setAttribute("aria-disabled", "true");
});

// Browsers can keep whole pages for Back, even with `no-store`: remove content that is shown only once.
addEventListener("pagehide", () => {
  for (const element of document.querySelectorAll("[data-once]")) element.remove();
});

// The forms of a page that the browser restores can be sent again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("button[aria-disabled]")) button.removeAttribute("aria-disabled");
});

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
showLocalTimes(document);
// Live lists replace their rows.
new MutationObserver((changes) => {
  for (const { target } of changes) showLocalTimes(target);
}).observe(document.querySelector("main"), { childList: true, subtree: true });
