// Sends the form of the page. Without this script, the user does it with the button.

document.getElementById("form-post").requestSubmit();
