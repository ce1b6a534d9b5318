// Starts better-auth with its plugin deviceAuthorization on better-sqlite3: node better_auth.mjs PORT DATABASE

import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import { deviceAuthorization } from 'better-auth/plugins';
import Database from 'better-sqlite3';

import { serve } from './serving.mjs';

const DAY = 24 * 3600;
const [port, path] = process.argv.slice(2);

const database = new Database(path, { timeout: 20_000 });
database.pragma('journal_mode = WAL');
database.pragma('synchronous = FULL'); // better-sqlite3 sets NORMAL for WAL, which may lose what was answered.

const auth = betterAuth({
  baseURL: `http://127.0.0.1:${port}`,
  secret: 'a secret for made-up sign-ins only, long enough',
  database,
  emailAndPassword: { enabled: true },
  session: { cookieCache: { enabled: true, maxAge: DAY } }, // Spares the approving user's session two reads.
  rateLimit: { enabled: false }, // It is on in production: a hundred requests in ten seconds.
  logger: { disabled: true },
  telemetry: { enabled: false },
  plugins: [deviceAuthorization({
    expiresIn: '1h',
    interval: '0s', // A poll never comes too soon: no `slow_down`.
    verificationUri: '/device',
    validateClient: (client) => client === 'bench',
  })],
});

async function signUp() {
  const body = { name: 'Simulated user', email: `user-${process.pid}@example.org`, password: 'correct horse battery' };
  const { headers } = await auth.api.signUpEmail({ body, returnHeaders: true });
  const cookies = headers.getSetCookie().map((cookie) => cookie.split(';')[0]);
  return new Headers({ cookie: cookies.join('; ') });
}

await (await getMigrations(auth.options)).runMigrations();
const headers = await signUp();

// The two calls that its verification page makes, through its own server-side API: claim the code, then approve it.
async function decide(userCode) {
  const claimed = await auth.api.deviceVerify({ query: { user_code: userCode }, headers });
  const approved = await auth.api.deviceApprove({ body: { userCode }, headers });
  return claimed.status === 'pending' && approved.success === true;
}

serve(Number(port), toNodeHandler(auth), decide);
