// A session of the application's own: here in this process's memory, in earnest a table.

import { randomBytes } from "node:crypto";

import { cookies } from "next/headers";

const sessions = (globalThis.sessions ??= new Map());
const NAME = "session";

export async function startSession(user) {
  const id = randomBytes(32).toString("base64url");
  sessions.set(id, user);
  (await cookies()).set(NAME, id, { httpOnly: true, sameSite: "lax", path: "/" });
}

export async function endSession() {
  const jar = await cookies();
  sessions.delete(jar.get(NAME)?.value);
  jar.delete(NAME);
}

export async function currentUser() {
  return sessions.get((await cookies()).get(NAME)?.value) ?? null;
}
