// The two pages.

/** Escape text for HTML, because a name may contain any characters. @param {string} text */
const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

/** @param {string} title @param {string} scriptUrl @param {string} content */
const page = (title, scriptUrl, content) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title}</title>
  <link rel="icon" href="/static/icon.svg">
  <link rel="stylesheet" href="/static/style.css">
  <script type="module" src="${scriptUrl}"></script>
</head>
<body>
  <main>
    ${content}
  </main>
</body>
</html>
`;

export function homePage({ baseUrl, projectId, user, next }) {
  const submitUrl = `/auth/taproof?next=${encodeURIComponent(next)}`;
  const content = user
    ? `<p>You are signed in. <a href="/members">To the members' page</a></p>`
    : `<p>Members sign in with their messenger account.</p>
    <taproof-button project-id="${projectId}" submit-url="${escaped(submitUrl)}"></taproof-button>`;
  return page("The corner shop", `${baseUrl}/sdk/taproof.js`, `<h1>The corner shop</h1>\n    ${content}`);
}

export function membersPage(user) {
  return page(
    "Members — The corner shop",
    "/static/sign-out.js",
    `<h1>Members</h1>
    <p>Welcome, <strong id="name">${escaped(user.messengerName)}</strong>.</p>
    <button id="sign-out" type="button">Sign out</button>`,
  );
}
