// A relying party: express-openid-connect, which mounts /login, /callback, /logout and /backchannel-logout itself.

import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

import express from 'express';
import oidc from 'express-openid-connect';

const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, PORT } = process.env;
process.env.SECRET = randomBytes(32).toString('hex');
const fingerprint = (token) => createHash('sha256').update(token).digest('hex').slice(0, 16);
const escaped = (text) => String(text).replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
const sessions = new Map(); // A back-channel logout needs sessions on the server.
const store = {
  get: (id, done) => done(null, sessions.get(id)),
  set: (id, session, done) => { sessions.set(id, session); done(null); },
  destroy: (id, done) => { sessions.delete(id); done(null); },
};

const app = express();
const server = http.createServer(app);
server.listen(Number(PORT), '127.0.0.1', () => {
  const baseURL = `http://127.0.0.1:${server.address().port}`;
  const { SECRET } = process.env;
  const { auth } = oidc;
  app.use(auth({
    issuerBaseURL: OIDC_ISSUER,
    baseURL,
    clientID: OIDC_CLIENT_ID,
    clientSecret: OIDC_CLIENT_SECRET,
    secret: SECRET,
    authRequired: false,
    authorizationParams: { response_type: "code", scope: "openid profile offline_access" },
    idpLogout: true,
    session: { store },
    backchannelLogout: { store },
  }));
  app.get('/', (request, response) => {
    let body = '<a href="/login">Sign in</a>';
    if (request.oidc.isAuthenticated()) {
      const { sub, name } = request.oidc.user;
      const tokens = { access_token: request.oidc.accessToken.access_token, id_token: request.oidc.idToken };
      const shown = { sub, name, access_token: fingerprint(tokens.access_token), id_token: fingerprint(tokens.id_token) };
      const elements = Object.entries(shown).map(([id, value]) => `<p id="${id}">${escaped(value)}</p>`).join('');
      body = `${elements}<form action="/logout"><button>Sign out</button></form>`
        + '<form method="post" action="/refresh"><button>Refresh</button></form>';
    }
    response.type('html').send(`<!doctype html><html lang="en"><title>Application</title>${body}</html>`);
  });
  app.post('/refresh', async (request, response) => {
    await request.oidc.accessToken.refresh();
    response.redirect(303, '/');
  });
  app.use((error, request, response, next) => { // eslint-disable-line no-unused-vars -- Express counts parameters.
    console.error(error);
    response.status(error.status ?? 500).type('html').send(`<p id="error">${escaped(error.error ?? error.message)}</p>`);
  });
  console.log(JSON.stringify(server.address()));
});
