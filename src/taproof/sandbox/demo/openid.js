// OpenID Connect in a browser application without a secret: the authorization code flow with PKCE (OpenID Connect Core
// 1.0, section 3.1; RFC 7636; RFC 9207). Most applications leave this to a library, such as openid-client.

/** Where this tab keeps the request while the user is at the service. */
const STORED = "taproof_demo_openid";
const SCOPE = "openid profile phone";
const REQUEST_TIMEOUT = 10_000;

const SENTENCES = {
  access_denied: "You did not sign in. Nothing was shared.",
  unauthorized_client: "The project's public access is off, so this page cannot sign anyone in.",
};

/** The service sent the user back without a code. `cancelled`: the user wanted it so. */
class NotSignedIn extends Error {
  constructor(error, description) {
    super(SENTENCES[error] ?? description ?? `The service returned the error ${error}.`);
    this.cancelled = error === "access_denied";
  }
}

/** Send the user to the service. */
export async function beginSignIn(issuer, clientId) {
  if (location.origin !== new URL(issuer).origin) {
    throw new Error(`OpenID Connect returns to one address only. Open ${issuer}/demo and sign in there.`);
  }
  const request = { state: randomText(), nonce: randomText(), codeVerifier: randomText() };
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(request.codeVerifier));
  sessionStorage.setItem(STORED, JSON.stringify(request));
  const parameters = new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: `${issuer}/demo`,
    scope: SCOPE,
    state: request.state,
    nonce: request.nonce,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  // The service's page is never shown inside another page.
  top.location.assign(`${issuer}/oidc/authorize?${parameters}`);
}

/** Return the parameters with which the service sent the user back, or null. They do not stay in the address bar. */
export function takeResponse() {
  const response = new URLSearchParams(location.search);
  if (!response.has("code") && !response.has("error")) {
    return null;
  }
  history.replaceState(null, "", location.pathname);
  return response;
}

/** Return the request of this tab that the response answers. */
export function findRequest(response, issuer) {
  const request = JSON.parse(sessionStorage.getItem(STORED));
  sessionStorage.removeItem(STORED);
  // Without this check, another site could sign the user in to someone else's account.
  if (!request || response.get("state") !== request.state) {
    throw new Error("This sign-in was not started in this tab. Start a new one.");
  }
  // Without this check, another provider could get the code (RFC 9207).
  if (response.get("iss") !== issuer) {
    throw new Error("Another service sent this response. Start a new sign-in.");
  }
  return request;
}

/** Exchange the code of the response for an ID token, and return it. Only the backend can verify its signature. */
export async function redeemCode(response, request, issuer, clientId) {
  if (!response.has("code")) {
    throw new NotSignedIn(response.get("error"), response.get("error_description"));
  }
  const idToken = await exchange(response.get("code"), request.codeVerifier, issuer, clientId);
  // Without this check, an ID token of another sign-in could be put in place of this one.
  if (claimsOf(idToken).nonce !== request.nonce) {
    throw new Error("The ID token belongs to another sign-in. Start a new one.");
  }
  return idToken;
}

async function exchange(code, codeVerifier, issuer, clientId) {
  let response;
  let answer;
  try {
    response = await fetch(`${issuer}/oidc/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "authorization_code",
        code,
        redirect_uri: `${issuer}/demo`,
        client_id: clientId,
        code_verifier: codeVerifier,
      }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT),
    });
    answer = await response.json();
  } catch {
    throw new Error("The service cannot be reached. Check the connection, and start a new sign-in.");
  }
  if (!response.ok) {
    throw new NotSignedIn(answer.error, answer.error_description);
  }
  return answer.id_token;
}

/** Return the claims of a JWT without verifying it. */
export function claimsOf(token) {
  const payload = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
