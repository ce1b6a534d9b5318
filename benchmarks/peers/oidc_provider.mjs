// Starts oidc-provider with its device flow: node oidc_provider.mjs PORT [DATABASE]; in memory without a DATABASE.
// A DATABASE is Redis's socket if its name ends with .sock, otherwise a SQLite file.

import { generateKeyPairSync } from 'node:crypto';

import Provider from 'oidc-provider';
import { normalize } from 'oidc-provider/lib/helpers/user_codes.js';

import { memoryAdapter } from './memory_adapter.mjs';
import { redisAdapter } from './redis_adapter.mjs';
import { serve } from './serving.mjs';
import { sqliteAdapter } from './sqlite_adapter.mjs';

const HOUR = 3600;
const [port, database] = process.argv.slice(2);

function adapter() {
  if (!database) return memoryAdapter();
  return database.endsWith('.sock') ? redisAdapter(database) : sqliteAdapter(database);
}

const account = (accountId) => ({
  accountId,
  claims: () => ({ sub: accountId, name: `User ${accountId}`, preferred_username: `user${accountId}` }),
});

const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: adapter(),
  clients: [{
    client_id: 'bench',
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
    response_types: [],
    redirect_uris: [],
    id_token_signed_response_alg: 'ES256',
  }],
  // A signature of P-256 takes a fraction of the time of RSA's, which is the default.
  jwks: { keys: [generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })] },
  cookies: { keys: ['a key for made-up sign-ins only'] },
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: false } },
  // The identity is in the ID token, so that one redeem tells who signed in.
  claims: { openid: ['sub', 'name', 'preferred_username'] },
  conformIdTokenClaims: false,
  findAccount: (_, accountId) => account(accountId),
  ttl: { AccessToken: HOUR, DeviceCode: HOUR, Grant: HOUR, IdToken: HOUR, Interaction: HOUR, Session: HOUR },
});

// What the provider's pages do when a user enters the code and confirms, by its models: the code is taken up, a grant
// is made, the code gets account and grant (lib/actions/code_verification.js and lib/actions/authorization/device.js).
// The pages' own sessions and interactions are left out, which spares it work.
async function decide(userCode) {
  const code = await provider.DeviceCode.findByUserCode(normalize(userCode));
  if (!code?.isValid || code.error || code.accountId || code.inFlight) return false;
  code.inFlight = true;
  await code.save();
  const accountId = 'simulated-user';
  const grant = new provider.Grant({ accountId, clientId: code.clientId });
  grant.addOIDCScope('openid');
  const grantId = await grant.save();
  Object.assign(code, { accountId, grantId, scope: 'openid', authTime: Math.floor(Date.now() / 1000) });
  await code.save();
  return true;
}

serve(Number(port), provider.callback(), decide);
