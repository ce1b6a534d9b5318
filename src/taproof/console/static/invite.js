// Puts the code of an invitation, which the link carries behind the #, into the form, and takes it out of the address:
// it is as good as a password until it is used, and an address is kept in the browser's history. The form is not sent
// from here: that takes a person's click, which a program that opens links does not do.

function take() {
  const code = location.hash.slice(1);
  const field = document.getElementById("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    if (field) {
      field.value = code;
      field.closest(".field").hidden = true; // There is nothing left to type.
      field.form.querySelector("button").focus();
    }
  }
}

addEventListener("hashchange", take); // The link may be opened again in this very tab.
take();
