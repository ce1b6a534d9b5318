// Enhances every page: copy buttons, local times as tooltips, and forms that cannot be sent twice.

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

/** Add the local time to each instant in an element, as its title. */
function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const instant = new Date(time.dateTime);
    if (!Number.isNaN(instant.valueOf())) {
      time.title = instant.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
    }
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) copy(button);
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

showLocalTimes(document);
// Live lists replace their rows.
new MutationObserver((changes) => {
  for (const { target } of changes) showLocalTimes(target);
}).observe(document.querySelector("main"), { childList: true, subtree: true });
