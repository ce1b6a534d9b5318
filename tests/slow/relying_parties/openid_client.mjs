// A relying party: openid-client. /sign-in takes ?mode=query, form_post or par; /device starts the device grant.
// Without OIDC_CLIENT_SECRET it is a public client.

import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

import * as oidc from 'openid-client';

const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, PORT } = process.env;
const SCOPE = 'openid profile';
const secret = OIDC_CLIENT_SECRET ? oidc.ClientSecretBasic(OIDC_CLIENT_SECRET) : oidc.None();
const options = { execute: [oidc.allowInsecureRequests] }; // The provider of the tests has plain HTTP on loopback.
const config = await oidc.discovery(new URL(OIDC_ISSUER), OIDC_CLIENT_ID, {}, secret, options);

const visitors = new Map(); // By cookie: {user, checks, device}.
const fingerprint = (token) => createHash('sha256').update(token).digest('hex').slice(0, 16);
const escaped = (text) => String(text).replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
const elements = (fields) => Object.entries(fields).map(([id, value]) => `<p id="${id}">${escaped(value)}</p>`).join('');

function home({ user }) {
  if (user) return `${elements(user)}<form method="post" action="/sign-out"><button>Sign out</button></form>`;
  return '<a href="/sign-in">Sign in</a><form method="post" action="/device"><button>On another device</button></form>';
}

async function signedIn(tokens) {
  const { sub } = tokens.claims();
  const { name } = await oidc.fetchUserInfo(config, tokens.access_token, sub);
  return { sub, name, access_token: fingerprint(tokens.access_token), id_token: fingerprint(tokens.id_token) };
}

async function signIn(visitor, url) {
  const mode = url.searchParams.get('mode') ?? 'query';
  const verifier = oidc.randomPKCECodeVerifier();
  const [state, nonce] = [oidc.randomState(), oidc.randomNonce()];
  visitor.checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
  const parameters = {
    redirect_uri: new URL('/callback', url).href, scope: SCOPE, state, nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  };
  if (mode === 'form_post') parameters.response_mode = 'form_post';
  if (mode === 'par') return oidc.buildAuthorizationUrlWithPAR(config, parameters);
  return oidc.buildAuthorizationUrl(config, parameters);
}

async function callback(visitor, url, request) {
  const { method } = request;
  const answer = method === 'POST' ? new Request(url, { method, body: await read(request), headers: request.headers }) : url;
  const { checks } = visitor;
  delete visitor.checks;
  visitor.user = await signedIn(await oidc.authorizationCodeGrant(config, answer, checks));
}

async function device(visitor) {
  const started = await oidc.initiateDeviceAuthorization(config, { scope: SCOPE });
  visitor.device = oidc.pollDeviceAuthorizationGrant(config, started).then(signedIn);
  visitor.device.catch(() => {}); // /device/done reports it.
  const { user_code, verification_uri, verification_uri_complete } = started;
  return elements({ user_code, verification_uri, verification_uri_complete });
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

async function answer(request, response) {
  const url = new URL(request.url, `http://${request.headers.host}`);
  let id = /(?:^|; )openid_client=(\w+)/.exec(request.headers.cookie ?? '')?.[1];
  if (!visitors.has(id)) {
    id = randomBytes(16).toString('hex');
    visitors.set(id, {});
    response.setHeader('Set-Cookie', `openid_client=${id}; HttpOnly; Path=/; SameSite=Lax`);
  }
  const visitor = visitors.get(id);
  const show = (body) => response.end(`<!doctype html><html lang="en"><title>Application</title>${body}</html>`);
  const go = (place) => response.writeHead(303, { Location: place }).end();
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  switch (`${request.method} ${url.pathname}`) {
    case 'GET /': return show(home(visitor));
    case 'GET /sign-in': return go((await signIn(visitor, url)).href);
    case 'GET /callback':
    case 'POST /callback': await callback(visitor, url, request); return go('/');
    case 'POST /sign-out': visitors.delete(id); return go('/');
    case 'POST /device': return show(await device(visitor));
    case 'GET /device/done': visitor.user = await visitor.device; return go('/'); // Answers when the user has decided.
    default: return response.writeHead(404).end();
  }
}

const server = http.createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end(escaped(`${error.code ?? error.name}: ${error.error ?? error.message}`));
  });
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(JSON.stringify(server.address())));
