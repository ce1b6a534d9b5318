// Moves the invitation code from the URL's fragment into the form. Until it is used, the code is as
// sensitive as a password, and browsers keep URLs in their history. This script does not submit the form, so a program
// that only opens links does not use up an invitation.

function take() {
  const code = location.hash.slice(1);
  const field = document.getElementById("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    if (field) {
      field.value = code;
      field.closest(".field").hidden = true; // The field needs no more input.
      field.form.querySelector("button").focus();
    }
  }
}

addEventListener("hashchange", take); // The same tab can open another link.
take();
