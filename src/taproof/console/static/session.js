// Updates a session or delivery page while its content can still change.

const EVERY_MS = 2_000;

const stop = document.getElementById("moving-stop");
const state = document.getElementById("moving-state");
const { id } = document.querySelector("[data-moving]");
let timer = 0;
let finished = false;

function finish(sentence) {
  finished = true;
  clearTimeout(timer);
  stop.hidden = true;
  state.textContent = sentence;
}

/** Replace the current content with the new content, unless the text is the same. */
function replace(arrived) {
  const here = document.getElementById(id);
  const focused = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  if (arrived.textContent === here.textContent) return;
  const outcome = arrived.querySelector(".lead").textContent.trim().replace(/\s+/g, " ");
  const isNews = outcome !== here.querySelector(".lead").textContent.trim().replace(/\s+/g, " ");
  here.replaceWith(arrived);
  if (focused) arrived.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  if (isNews) state.textContent = outcome;
}

async function look() {
  try {
    if (document.visibilityState === "visible") {
      const answer = await fetch(location.href);
      if (answer.redirected) return finish("You are signed out. Reload the page to sign in again.");
      if (answer.status === 404) return finish("This no longer exists.");
      if (answer.ok) {
        const text = await answer.text();
        if (finished) return;
        const page = new DOMParser().parseFromString(text, "text/html");
        const arrived = page.getElementById(id);
        const isMoving = "moving" in arrived.dataset;
        replace(document.adoptNode(arrived));
        if (!isMoving) return finish(state.textContent);
      }
    }
  } catch {
    // The service cannot be reached; the next attempt can succeed.
  }
  if (!finished) timer = setTimeout(look, EVERY_MS);
}

stop.hidden = false;
stop.addEventListener("click", () => finish("Updates stopped. Reload the page to see changes."));
timer = setTimeout(look, EVERY_MS);
