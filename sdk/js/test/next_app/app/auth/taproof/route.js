import { taproofSignIn } from "taproof/next";
import { MemoryGuard, settingsFrom } from "taproof/server";

import { currentUser, startSession } from "../../session";

export const { POST } = taproofSignIn(() => {
  const { projectId, webhookSecret } = settingsFrom(process.env);
  return { projectId, webhookSecret, guard: new MemoryGuard(), startSession, currentUser };
});
