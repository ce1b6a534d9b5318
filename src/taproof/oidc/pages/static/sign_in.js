// The sign-in page: waits for a change of the sign-in's state, reloads the page then, and counts down. It also shows what
// the sign-in waits for. Without this script, the page reloads itself every few seconds.

/** The longest time in milliseconds that one call may take. The service answers earlier if nothing changes. */
const CALL_TIMEOUT = 40_000;
/** A call that is answered sooner, without a change, did not wait: the service is busy. */
const SHORT_CALL = 1_000;
const PAUSE = 2_000;
const SHORTEST_VISIT = 1_000;
const LONGEST_PAUSE = 30_000;

/** The command for the bot, for messengers that lose the code of the link. */
const stuck = document.getElementById("stuck");
const status = document.getElementById("status");
const { statusUrl, seen, offline } = status.dataset;
let { hint } = status.dataset;
let waitingText = status.textContent;

let call = null;
let timer = 0;
let failures = 0;
let isLeaving = false;

/** A failed call; `pause` is the time in milliseconds that the service asks for, or 0. */
class CallFailed extends Error {
  constructor(pause = 0) {
    super();
    this.pause = pause;
  }
}

/** Return the sign-in's state, hint and text, when they have changed; the state is null if this browser may not read it. */
async function readState(signal) {
  const response = await fetch(`${statusUrl}?${new URLSearchParams({ seen, hint })}`, {
    headers: { Accept: "application/json" },
    cache: "no-store",
    signal,
  });
  if ([408, 425, 429].includes(response.status) || response.status >= 500) {
    throw new CallFailed(1_000 * (Number(response.headers.get("Retry-After")) || 0));
  }
  return response.ok ? response.json() : { state: null };
}

async function ask() {
  if (isLeaving) {
    return;
  }
  clearTimeout(timer);
  call?.abort();
  const controller = new AbortController();
  call = controller;
  const timeout = setTimeout(() => controller.abort(), CALL_TIMEOUT);
  const asked = performance.now();
  let pause = 0;
  try {
    const answer = await readState(controller.signal);
    if (controller !== call) {
      return;
    }
    failures = 0;
    if (answer.state !== seen) {
      // The reloaded page shows the new state, or why it cannot be read. If it showed this one again, by a fault, the
      // page would reload again: at most once a second.
      timer = setTimeout(() => location.reload(), SHORTEST_VISIT - performance.now());
      return;
    }
    const isChanged = answer.hint !== hint;
    ({ hint, text: waitingText } = answer);
    say(waitingText);
    hideConfirm();
    pause = !isChanged && performance.now() - asked < SHORT_CALL ? PAUSE : 0;
  } catch (error) {
    if (controller !== call) {
      return; // A newer call has replaced this one.
    }
    say(offline);
    // Many pages must not come back at the same moment after an interruption.
    const backoff = Math.min(LONGEST_PAUSE, 1_000 * 2 ** failures) * (0.5 + Math.random() / 2);
    failures += 1;
    pause = Math.max(backoff, error.pause ?? 0);
  } finally {
    clearTimeout(timeout);
  }
  timer = setTimeout(ask, pause);
}

/**
 * Stop asking while the answer to a form is under way. The form changes the sign-in's state, and a reload would replace
 * that answer. A page that is still there much later has stayed, because the answer opened an app, or never came.
 */
function leave() {
  call?.abort();
  call = null;
  clearTimeout(timer);
  isLeaving = true;
  timer = setTimeout(() => {
    isLeaving = false;
    ask();
  }, CALL_TIMEOUT);
}

/** Change the status line, unless it is the same: screen readers would repeat it. */
function say(text) {
  if (status.textContent !== text) {
    status.textContent = text;
  }
}

/**
 * Show how to confirm only until the user has done so. The messenger then asks for the phone number. Show the command for
 * the bot only until the link is open.
 */
function hideConfirm() {
  for (const each of document.querySelectorAll("[data-asks]")) {
    each.hidden = hint === "phone_asked";
  }
  if (stuck) {
    stuck.hidden = hint !== "waiting";
  }
}

function countDown(timeLeft) {
  const end = performance.now() + 1_000 * Number(timeLeft.dataset.secondsLeft);
  const show = () => {
    const seconds = Math.max(0, Math.ceil((end - performance.now()) / 1_000));
    timeLeft.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    if (seconds === 0) {
      clearInterval(countdown);
      ask();
    }
  };
  const countdown = setInterval(show, 1_000);
  show();
}

document.addEventListener("visibilitychange", () => {
  // A call of a page in the background may be dead: phones cut its connection while the messenger is in front.
  if (document.visibilityState === "visible") {
    ask();
  }
});
addEventListener("online", ask);
addEventListener("submit", leave);
addEventListener("pageshow", (event) => {
  if (event.persisted) {
    location.reload();
  }
});
stuck?.querySelector("button").addEventListener("click", async (event) => {
  const command = stuck.querySelector("code");
  try {
    await navigator.clipboard.writeText(command.textContent);
    event.target.textContent = `${event.target.textContent.replace(" ✓", "")} ✓`;
  } catch {
    // The browser does not allow it. Select the command, so that the user can copy it.
    getSelection().selectAllChildren(command);
  }
});
const timeLeft = document.getElementById("time-left");
if (timeLeft) {
  countDown(timeLeft);
}
hideConfirm();
ask();
