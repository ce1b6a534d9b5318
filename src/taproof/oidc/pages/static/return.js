// The page to which the messenger leads after Confirm: takes the return code out of the address, and sends it with the
// form. Without this script, the service cannot get the code, because browsers send no fragment.

const code = new URLSearchParams(location.hash.slice(1)).get("taproof_return");
history.replaceState(null, "", location.pathname);
const form = document.getElementById("return");
form.elements.return_code.value = code ?? "";
form.requestSubmit();
