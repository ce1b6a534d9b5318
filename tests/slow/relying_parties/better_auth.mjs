// A relying party: better-auth with its plugin generic-oauth, which reads the discovery document.

import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { genericOAuth } from 'better-auth/plugins';

const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, PORT } = process.env;
const fingerprint = (token) => createHash('sha256').update(token).digest('hex').slice(0, 16);
const escaped = (text) => String(text).replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
const database = { user: [], session: [], account: [], verification: [] };

const server = http.createServer();
server.listen(Number(PORT), '127.0.0.1', () => {
  const baseURL = `http://127.0.0.1:${server.address().port}`;
  const auth = betterAuth({
    baseURL,
    secret: randomBytes(32).toString('hex'),
    database: memoryAdapter(database),
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true, requireEmailVerification: true }, // Concerns users with passwords only.
    plugins: [
      genericOAuth({
        config: [
          {
            providerId: "taproof",
            discoveryUrl: `${OIDC_ISSUER}/.well-known/openid-configuration`,
            clientId: OIDC_CLIENT_ID,
            clientSecret: OIDC_CLIENT_SECRET,
            scopes: ["openid", "profile", "offline_access"],
          },
        ],
      }),
    ],
  });
  const handle = toNodeHandler(auth);

  async function home(headers) {
    const session = await auth.api.getSession({ headers });
    if (!session) return '<form method="post" action="/sign-in"><button>Sign in</button></form>';
    const account = database.account.find((each) => each.userId === session.user.id);
    const shown = {
      sub: account.accountId, name: session.user.name,
      access_token: fingerprint(account.accessToken), id_token: fingerprint(account.idToken),
    };
    const elements = Object.entries(shown).map(([id, value]) => `<p id="${id}">${escaped(value)}</p>`).join('');
    return `${elements}<form method="post" action="/sign-out"><button>Sign out</button></form>`
      + '<form method="post" action="/refresh"><button>Refresh</button></form>';
  }

  async function answer(request, response) {
    const headers = new Headers(request.headers);
    const follow = (answered, place) => {
      response.writeHead(303, { Location: place, 'Set-Cookie': answered.headers.getSetCookie() }).end();
    };
    switch (`${request.method} ${request.url}`) {
      case 'GET /':
        response.setHeader('Content-Type', 'text/html; charset=utf-8');
        return response.end(`<!doctype html><html lang="en"><title>Application</title>${await home(headers)}</html>`);
      case 'POST /sign-in': {
        const body = { provider: 'taproof', callbackURL: '/' };
        const answered = await auth.api.signInSocial({ body, headers, asResponse: true });
        return follow(answered, (await answered.clone().json()).url);
      }
      case 'POST /sign-out': {
        const answered = await auth.api.signOut({ body: { callbackURL: '/' }, headers, asResponse: true });
        return follow(answered, (await answered.clone().json()).url ?? '/');
      }
      case 'POST /refresh': {
        const [{ id }] = await auth.api.listUserAccounts({ headers });
        return follow(await auth.api.refreshToken({ body: { accountId: id }, headers, asResponse: true }), '/');
      }
      default:
        return handle(request, response);
    }
  }

  server.on('request', (request, response) => {
    answer(request, response).catch((error) => {
      console.error(error);
      response.writeHead(500).end(escaped(error.message));
    });
  });
  console.log(JSON.stringify(server.address()));
});
