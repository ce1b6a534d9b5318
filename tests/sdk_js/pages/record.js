// Keeps every event of the buttons on the page, and what nobody caught, for the tests to look at.
window.heard = [];
for (const name of ["status", "hint", "confirmed", "signed-in", "ended", "error"]) {
  document.addEventListener(`taproof-${name}`, (event) => {
    const { error, ...detail } = event.detail;
    window.heard.push([name, error ? { name: error.name, code: error.code, message: error.message } : detail]);
    if (window.stays) event.preventDefault();
  });
}
