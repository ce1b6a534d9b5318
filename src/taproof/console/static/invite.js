// Puts the code of an invitation, which the link carries behind the #, into the form, and takes it out of the address:
// it is as good as a password until it is used, and an address is kept in the browser's history.

function take() {
  const code = location.hash.slice(1);
  const field = document.getElementById("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    if (field) {
      field.value = code;
      field.form.querySelector("button").focus();
    }
  }
}

addEventListener("hashchange", take); // The link may be opened again in this very tab.
take();
