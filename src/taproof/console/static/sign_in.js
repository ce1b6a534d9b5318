// Starts the sign-in with the messenger when the page is shown: the next page then needs only the tap in the messenger.
// Without this script, the visitor presses the button.

function start() {
  if (document.visibilityState === "visible") {
    document.removeEventListener("visibilitychange", start);
    document.getElementById("with-messenger").requestSubmit();
  }
}

// A tab that the browser opens in the background starts nothing until somebody looks at it.
document.addEventListener("visibilitychange", start);
start();
