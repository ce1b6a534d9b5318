// Moves the code of an invitation from the fragment of the address into the form. Until it is used, the code is as
// sensitive as a password, and browsers keep addresses in their history. This script does not send the form: only a
// person clicks the button, so a program that opens links uses up no invitation.

function take() {
  const code = location.hash.slice(1);
  const field = document.getElementById("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    if (field) {
      field.value = code;
      field.closest(".field").hidden = true; // The field needs no input any more.
      field.form.querySelector("button").focus();
    }
  }
}

addEventListener("hashchange", take); // The same tab may open another link.
take();
