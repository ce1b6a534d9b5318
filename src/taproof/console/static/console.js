// What every page gets on top of what works without a script: copy buttons, times in the reader's own time zone as a
// hint, and forms that are not sent twice.

const COPIED_MS = 2000;

/** Copy the text of the element that a button names, and say so on the button, which is a live region meanwhile. */
async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Without the permission, or on plain HTTP: select it, so that one key copies it.
    getSelection().selectAllChildren(source);
    announce("Selected. Press Ctrl+C, or Command+C, to copy.");
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

/** Have a screen reader say something. */
function announce(sentence) {
  said.textContent = sentence;
}

/** Say the local time of each instant; also of parts of the page that came later. */
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
  // Not `disabled`: that would leave the name of the button out of what is sent, and take the focus away.
  event.submitter?.setAttribute("aria-disabled", "true");
});

// Browsers keep whole pages for Back, whatever they were told: what is shown once does not come back with them.
addEventListener("pagehide", () => {
  for (const element of document.querySelectorAll("[data-once]")) element.remove();
});

// A page that the browser brings back as it was left may be sent again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("button[aria-disabled]")) button.removeAttribute("aria-disabled");
});

showLocalTimes(document);
// Lists that are kept up to date replace their rows.
new MutationObserver((changes) => {
  for (const { target } of changes) showLocalTimes(target);
}).observe(document.querySelector("main"), { childList: true, subtree: true });
