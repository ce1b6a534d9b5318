// Disables the settings that have no effect while the setting that they depend on is off, and keeps the button that
// saves in view while there is something to save. Without this script, all settings can be edited, and the style sheet
// dims those without effect.

/** Return whether a setting is on. */
function isOn(control) {
  if (control.type === "checkbox") return control.checked;
  return control.value.trim() !== "" && control.value !== "off";
}

for (const group of document.querySelectorAll("fieldset[data-needs]")) {
  const control = document.getElementById(group.dataset.needs);
  const update = () => {
    group.disabled = !isOn(control);
  };
  control.addEventListener("input", update);
  // The browser can restore what was typed before a reload or after Back.
  addEventListener("pageshow", update);
  update();
}

const saveBar = document.querySelector(".save-bar");
saveBar.closest("form").addEventListener("input", () => saveBar.classList.add("unsaved"));
