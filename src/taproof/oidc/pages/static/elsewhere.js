// The page to which the messenger leads, in another browser: offers its address, with the return code, as a link to open
// or to copy. Only the browser in which the sign-in began can use the code.

const address = location.href;
history.replaceState(null, "", location.pathname);
const link = document.getElementById("link");
const box = document.getElementById("address");
link.href = address;
link.textContent = address;
box.hidden = false;
document.getElementById("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(address);
    document.getElementById("copied").textContent = box.dataset.copied;
  } catch {
    // The browser does not allow it. Select the address, so that the user can copy it.
    getSelection().selectAllChildren(link);
  }
});
