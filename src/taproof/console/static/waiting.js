// The waiting page: polls the status of the sign-in and reloads the page once it is decided. Without this script, the
// page reloads itself every few seconds.

/** The longest time in seconds that one call waits for the decision. */
const WAIT = 25;
const REQUEST_TIMEOUT = 35_000;
const RETRY = 2_000;

const waiting = document.getElementById("waiting");
const status = document.getElementById("waiting-status");
const left = document.getElementById("waiting-left");
const end = performance.now() + Number(waiting.dataset.left);

let asking = false;
let timer = 0;

/** Return whether the sign-in is still pending; throw if the service cannot answer. */
async function isPending() {
  const response = await fetch(`${waiting.dataset.stateUrl}?wait=${WAIT}`, {
    headers: { Accept: "application/json" },
    signal: AbortSignal.timeout(REQUEST_TIMEOUT),
  });
  if (response.status === 429 || response.status >= 500) {
    throw new Error(`status ${response.status}`);
  }
  // The reloaded page shows any other response, such as a redirect to the sign-in page.
  const type = response.headers.get("Content-Type") ?? "";
  return response.ok && type.startsWith("application/json") && (await response.json()).status === "pending";
}

async function ask() {
  clearTimeout(timer);
  if (asking) {
    return;
  }
  asking = true;
  const asked = performance.now();
  let pause = RETRY;
  try {
    if (!(await isPending())) {
      location.reload();
      return;
    }
    say("No answer yet.");
    if (performance.now() - asked >= (WAIT - 1) * 1_000) {
      pause = 0; // The call waited. An earlier response means that too many calls are waiting: then poll every two seconds.
    }
  } catch {
    say("Cannot reach the service. Trying again…");
  } finally {
    asking = false;
  }
  timer = setTimeout(ask, pause);
}

/** Change the line next to the badge, unless it is the same: screen readers would repeat it. */
function say(text) {
  if (status.lastChild.textContent.trim() !== text) {
    status.lastChild.textContent = ` ${text}`;
  }
}

function showLeft() {
  const seconds = Math.max(0, Math.ceil((end - performance.now()) / 1_000));
  left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

document.addEventListener("visibilitychange", () => {
  // Browsers slow down the timers of hidden tabs: a user who returns from the messenger should not wait for them.
  if (document.visibilityState === "visible") {
    ask();
  }
});
addEventListener("pageshow", (event) => {
  if (event.persisted) {
    location.reload();
  }
});
showLeft();
setInterval(showLeft, 1_000);
ask();
