// The waiting page: asks how the sign-in stands, and reads the page again once it is decided. Without this script the
// page reads itself again every few seconds.

/** How long one call waits for the decision, in seconds. */
const WAIT = 25;
const REQUEST_TIMEOUT = 35_000;
const RETRY = 2_000;

const waiting = document.getElementById("waiting");
const status = document.getElementById("waiting-status");
const left = document.getElementById("waiting-left");
const end = performance.now() + Number(waiting.dataset.left);

let asking = false;
let timer = 0;

/** Returns whether the sign-in is still pending; throws when that cannot be told just now. */
async function isPending() {
  const response = await fetch(`${waiting.dataset.stateUrl}?wait=${WAIT}`, {
    headers: { Accept: "application/json" },
    signal: AbortSignal.timeout(REQUEST_TIMEOUT),
  });
  if (response.status === 429 || response.status >= 500) {
    throw new Error(`status ${response.status}`);
  }
  // Anything else that is no answer, such as the sign-in page in its place, is for the whole page to show.
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
      pause = 0; // It did wait. An answer that comes sooner says that too many wait: then every two seconds.
    }
  } catch {
    say("The service cannot be reached just now. Trying again…");
  } finally {
    asking = false;
  }
  timer = setTimeout(ask, pause);
}

/** Changes the line beside the badge; the same text again would be read out again. */
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
  // Timers of a hidden tab are slowed down: someone who comes back from the messenger should not wait for them.
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
