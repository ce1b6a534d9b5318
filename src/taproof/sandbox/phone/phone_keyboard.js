// The bot's keyboard below the message field (https://core.telegram.org/bots/features#keyboards).

/**
 * Return a function that shows the keyboard.
 * @param element finds an element of the page by its id
 * @param press called with the button's element and the button, in the control API's form
 */
export function replyKeyboard(element, press) {
  const panel = element("keyboard");
  const toggle = element("keyboard-toggle");
  let written = "null";

  /** A persistent keyboard stays open; the person opens and closes any other. */
  function open(isOpen) {
    panel.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
  }

  function show(keyboard) {
    // An unchanged keyboard keeps its elements, and so the focus.
    if (written === JSON.stringify(keyboard)) {
      return;
    }
    written = JSON.stringify(keyboard);
    panel.replaceChildren(...(keyboard?.buttons ?? []).map((row) => rowElement(row)));
    toggle.hidden = keyboard === null || keyboard.is_persistent;
    element("text").placeholder = keyboard?.input_field_placeholder ?? "Message";
    open(keyboard !== null && !keyboard.is_hidden);
  }

  function rowElement(buttons) {
    const row = document.createElement("div");
    for (const button of buttons) {
      const control = document.createElement("button");
      control.type = "button";
      control.dir = "auto";
      control.textContent = button.text;
      control.addEventListener("click", () => press(control, button));
      row.append(control);
    }
    return row;
  }

  toggle.addEventListener("click", () => open(panel.hidden));
  return { show };
}
