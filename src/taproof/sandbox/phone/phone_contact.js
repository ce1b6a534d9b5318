// The dialog that shares a contact: the user's own, another user's, or a number unknown to the messenger.

const OTHER = "other";

/**
 * Return a function that opens the dialog.
 * @param element finds an element of the page by its id
 * @param fullName returns a user's name
 * @param share called with the body for the control API's `share`
 */
export function contactForm(element, fullName, share) {
  const dialog = element("contact");
  const form = dialog.querySelector("form");
  const whose = element("contact-whose");
  const other = element("contact-other");

  function showFields() {
    other.hidden = whose.value !== OTHER;
    // Hidden fields must not be required.
    other.disabled = other.hidden;
  }

  function open(people, ownId) {
    const others = people.filter((user) => String(user.id) !== ownId);
    whose.replaceChildren(
      new Option("My own", "own"),
      ...others.map((user) => new Option(fullName(user), user.id)),
      new Option("Someone else", OTHER),
    );
    element("contact-from").replaceChildren(
      new Option("Not forwarded", ""),
      ...people.map((user) => new Option(fullName(user), user.id)),
    );
    form.reset();
    showFields();
    dialog.returnValue = "";
    dialog.showModal();
  }

  whose.addEventListener("change", showFields);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "share") {
      return;
    }
    const fields = Object.fromEntries(new FormData(form));
    const typed = { phone_number: fields.phone_number, first_name: fields.first_name };
    const contact = whose.value === OTHER ? typed : whose.value === "own" ? "own" : Number(whose.value);
    share(fields.forwarded_from ? { contact, forwarded_from: Number(fields.forwarded_from) } : { contact });
  });
  return { open };
}
