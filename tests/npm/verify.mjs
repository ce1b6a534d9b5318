// Checks webhooks with the npm package of Standard Webhooks, for tests/sdk/test_webhook_npm.py. Reads from stdin a list of
// {secret, headers, body}, the body in base64, and prints for each the event, or null when the package refuses it.
import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

function check({ secret, headers, body }) {
  try {
    return new Webhook(secret).verify(Buffer.from(body, "base64"), headers);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return null;
    throw error;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(check)));
