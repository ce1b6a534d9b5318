// Starts oidc-provider with its code flow: node code_flow.mjs PORT [DATABASE]; in memory without a DATABASE.
// The sign-in page approves at once, as a simulated user, and consent is given by `loadExistingGrant`.

import { generateKeyPairSync } from 'node:crypto';

import Provider from 'oidc-provider';

import { memoryAdapter } from './memory_adapter.mjs';
import { serve } from './serving.mjs';
import { sqliteAdapter } from './sqlite_adapter.mjs';

const HOUR = 3600;
const PAGE = '/interaction/';
const [port, database] = process.argv.slice(2);

const account = (accountId) => ({
  accountId,
  claims: () => ({ sub: accountId, name: `User ${accountId}`, preferred_username: `user${accountId}` }),
});

async function grantAll({ oidc }) {
  const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
  grant.addOIDCScope('openid profile');
  await grant.save();
  return grant;
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: database ? sqliteAdapter(database) : memoryAdapter(),
  clients: [{
    client_id: 'bench',
    client_secret: 'a secret for made-up sign-ins only',
    redirect_uris: ['http://127.0.0.1:1/callback'],
    token_endpoint_auth_method: 'client_secret_basic',
  }],
  jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })] },
  cookies: { keys: ['a key for made-up sign-ins only'] },
  features: { devInteractions: { enabled: false } },
  claims: { openid: ['sub'], profile: ['name', 'preferred_username'] },
  conformIdTokenClaims: false, // Taproof's ID token names the user too.
  findAccount: (_, accountId) => account(accountId),
  interactions: { url: (_, { uid }) => `${PAGE}${uid}` },
  loadExistingGrant: grantAll,
  ttl: { AccessToken: HOUR, Grant: HOUR, IdToken: HOUR, Interaction: HOUR, Session: HOUR },
});

const callback = provider.callback();

function answer(request, response) {
  if (!request.url.startsWith(PAGE)) {
    callback(request, response);
    return;
  }
  provider.interactionFinished(request, response, { login: { accountId: 'simulated-user' } }).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
}

serve(Number(port), answer, async () => false);
