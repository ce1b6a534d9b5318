// Opens the folded part of a page that a link leads into. Newer browsers do this without a script.

/** Open the part that holds the target of the address, and show the target. */
function reveal() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", reveal);
reveal();
