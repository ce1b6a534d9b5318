// A relying party that is only a page: oidc-client-ts, a public client in the browser.

import { readFile } from 'node:fs/promises';
import http from 'node:http';

const { OIDC_ISSUER, OIDC_CLIENT_ID, PORT } = process.env;
const library = await readFile(new URL('node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js', import.meta.url));
const page = `<!doctype html><html lang="en"><title>Application</title><div id="shown"></div>
<script src="/library.js"></script>
<script type="module">
  const [OIDC_ISSUER, OIDC_CLIENT_ID] = ${JSON.stringify([OIDC_ISSUER, OIDC_CLIENT_ID])};
  const { UserManager } = oidc;
  const manager = new UserManager({
    authority: OIDC_ISSUER,
    client_id: OIDC_CLIENT_ID,
    redirect_uri: location.origin + "/callback",
    post_logout_redirect_uri: location.origin + "/",
    scope: "openid profile offline_access",
  });
  const shown = document.getElementById('shown');
  const fingerprint = async (token) => {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
    return Array.from(new Uint8Array(digest), (each) => each.toString(16).padStart(2, '0')).join('').slice(0, 16);
  };
  const add = (name, text, press) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (press) element.onclick = () => press().catch((error) => { add('p', error.error ?? error.message).id = 'error'; });
    shown.append(element);
    return element;
  };
  async function show() {
    shown.replaceChildren();
    const user = await manager.getUser();
    if (!user) {
      add('button', 'Sign in', () => manager.signinRedirect({}));
      add('button', 'Sign in as before', () => manager.signinRedirect({ id_token_hint: localStorage.getItem('hint') }));
      return;
    }
    localStorage.setItem('hint', user.id_token);
    const fields = { sub: user.profile.sub, name: user.profile.name ?? '' };
    for (const each of ['access_token', 'id_token']) fields[each] = await fingerprint(user[each]);
    for (const [id, value] of Object.entries(fields)) add('p', value).id = id;
    add('button', 'Sign out', () => manager.signoutRedirect());
    add('button', 'Refresh', async () => { await manager.signinSilent(); await show(); });
    add('button', 'Revoke', async () => { await manager.revokeTokens(); add('p', 'Revoked').id = 'revoked'; });
  }
  async function callback() {
    try {
      if (!await manager.signinCallback()) return; // It ran in the frame of signinSilent().
      history.replaceState({}, '', '/');
      await show();
    } catch (error) {
      add('p', error.error ?? error.message).id = 'error';
    }
  }
  await (location.pathname === '/callback' ? callback() : show());
</script></html>`;

const server = http.createServer((request, response) => {
  if (request.url === '/library.js') {
    response.writeHead(200, { 'Content-Type': 'text/javascript' }).end(library);
  } else if (request.url === '/favicon.ico') {
    response.writeHead(204).end();
  } else {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page);
  }
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(JSON.stringify(server.address())));
