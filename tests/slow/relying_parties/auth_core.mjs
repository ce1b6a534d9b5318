// A relying party: Auth.js (@auth/core) with its own pages for signing in and out, and the provider by its issuer alone.

import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

import { Auth } from '@auth/core';

const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, PORT } = process.env;
process.env.AUTH_TAPROOF_ISSUER = OIDC_ISSUER;
process.env.AUTH_TAPROOF_ID = OIDC_CLIENT_ID;
process.env.AUTH_TAPROOF_SECRET = OIDC_CLIENT_SECRET;
const fingerprint = (token) => createHash('sha256').update(token).digest('hex').slice(0, 16);
const escaped = (text) => String(text).replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);

const taproof = {
  id: "taproof",
  name: "Messenger",
  type: "oidc",
  issuer: process.env.AUTH_TAPROOF_ISSUER,
  clientId: process.env.AUTH_TAPROOF_ID,
  clientSecret: process.env.AUTH_TAPROOF_SECRET,
};

const config = {
  secret: randomBytes(32).toString('hex'),
  trustHost: true,
  basePath: '/auth',
  providers: [{ ...taproof, style: { logo: '' } }], // Its logos are on another site.
  callbacks: {
    // `account` and `profile`, the claims of the ID token, are there only when a user signs in.
    jwt: ({ token, account, profile }) => (account ? {
      sub: profile.sub, name: profile.name,
      access_token: fingerprint(account.access_token), id_token: fingerprint(account.id_token),
    } : token),
    session: ({ token: { sub, name, access_token, id_token } }) => ({ user: { sub, name, access_token, id_token } }),
  },
};

async function home(origin, cookie) {
  const { user } = await (await Auth(new Request(`${origin}/auth/session`, { headers: { cookie } }), config)).json() ?? {};
  if (!user) return '<a href="/auth/signin">Sign in</a>';
  const elements = Object.entries(user).map(([id, value]) => `<p id="${id}">${escaped(value)}</p>`).join('');
  return `${elements}<a href="/auth/signout">Sign out</a>`;
}

async function answer(request, response) {
  const origin = `http://${request.headers.host}`;
  if (request.url === '/') {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    const body = await home(origin, request.headers.cookie ?? '');
    response.end(`<!doctype html><html lang="en"><title>Application</title>${body}</html>`);
    return;
  }
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = request.method === 'POST' ? Buffer.concat(parts) : undefined;
  const asked = new Request(`${origin}${request.url}`, { method: request.method, headers: request.headers, body });
  const answered = await Auth(asked, config);
  const headers = Object.fromEntries(answered.headers);
  response.writeHead(answered.status, { ...headers, 'set-cookie': answered.headers.getSetCookie() });
  response.end(Buffer.from(await answered.arrayBuffer()));
}

const server = http.createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(JSON.stringify(server.address())));
