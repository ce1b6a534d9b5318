// oidc-provider, a certified provider, in Taproof's place: node stand_in.mjs. It has Taproof's sign-in page, as far as
// the tests use it, and the calls of the sandbox with which a user confirms.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import http from 'node:http';

import Provider, { interactionPolicy } from 'oidc-provider';

const users = new Map();
const confirmed = new Map(); // The id of the user, by the uid of the interaction, which is the token of the deeplink.

const html = (body) => `<!doctype html><html lang="en"><title>Sign in</title>${body}</html>`;
const key = (type, options) => generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' });

function policy() {
  const { base, Check } = interactionPolicy;
  const prompts = base();
  // Taproof keeps no session of a user, so that each sign-in is confirmed.
  prompts.get('login').checks.add(new Check('always', 'Each sign-in is confirmed', (ctx) => !ctx.oidc.result?.login));
  prompts.get('consent').checks.remove('native_client_prompt');
  return prompts;
}

async function grantAll({ oidc }) {
  const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
  grant.addOIDCScope('openid profile email');
  await grant.save();
  return grant;
}

async function signInPage(provider, request, response) {
  const { uid } = await provider.interactionDetails(request, response);
  const accountId = confirmed.get(uid);
  if (accountId) {
    await provider.interactionFinished(request, response, { login: { accountId } });
    return;
  }
  const link = `${provider.issuer}/sandbox/phone?start=${uid}`;
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.end(html(`<meta http-equiv="refresh" content="1"><a id="open-messenger" href="${link}">Open</a>`));
}

async function sandbox(url, request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = JSON.parse(Buffer.concat(parts));
  const [, id, act] = /^\/sandbox\/users(?:\/(\d+)\/(open|tap))?$/.exec(url.pathname);
  const user = users.get(id) ?? { id: 7_000_000 + users.size, ...body };
  users.set(String(user.id), user);
  if (act === 'open') user.opened = new URL(body.deeplink).searchParams.get('start');
  if (act === 'tap') confirmed.set(user.opened, id);
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(act ? { answered: true, messages: [], alert: null } : user));
}

function providerAt(issuer) {
  return new Provider(issuer, {
    jwks: { keys: [key('rsa', { modulusLength: 2048 }), key('ec', { namedCurve: 'P-256' })] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false, // Taproof's ID tokens have these claims too.
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({
        sub: accountId, name: users.get(accountId).first_name, email: `${accountId}@users.example`, email_verified: false,
      }),
    }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      deviceFlow: {
        enabled: true,
        userCodeInputSource(ctx, form) {
          ctx.body = html(`${form}<button form="op.deviceInputForm">Continue</button>`);
        },
        userCodeConfirmSource(ctx, form) {
          ctx.body = html(`${form}<button form="op.deviceConfirmForm">Continue</button>`);
        },
        successSource(ctx) { ctx.body = html('Signed in'); },
      },
    },
    interactions: { policy: policy(), url: (_, { uid }) => `/oidc/authorize/${uid}` },
    loadExistingGrant: grantAll,
    ttl: { Grant: 600, Interaction: 600, Session: 600, AccessToken: 600, IdToken: 600, DeviceCode: 600 },
  });
}

const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const provider = providerAt(`http://127.0.0.1:${server.address().port}`);
  const callback = provider.callback();
  server.on('request', (request, response) => {
    const url = new URL(request.url, provider.issuer);
    let done = callback;
    if (url.pathname.startsWith('/sandbox/')) done = () => sandbox(url, request, response);
    else if (url.pathname === '/' || url.pathname === '/favicon.ico') done = () => response.writeHead(204).end();
    else if (url.pathname.startsWith('/oidc/authorize/')) done = () => signInPage(provider, request, response);
    Promise.resolve(done(request, response)).catch((error) => {
      console.error(error);
      response.writeHead(500).end();
    });
  });
  console.log(JSON.stringify(server.address()));
});
