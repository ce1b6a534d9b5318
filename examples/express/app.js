// A shop with a page for members, who sign in with a messenger account. `./run` starts it.

import { fileURLToPath } from "node:url";

import express from "express";
import session from "express-session";
import { requireSignedIn, signedIn, taproofExpress } from "taproof/express";
import { MemoryGuard, settingsFrom } from "taproof/server";

import { homePage, membersPage } from "./pages.js";

const { baseUrl, projectId, webhookSecret } = settingsFrom(process.env);
const { PORT = "8000", SESSION_SECRET, SECURE_COOKIES } = process.env;

const app = express();
app.disable("x-powered-by");

app.use((_, res, next) => {
  res.set({
    "Content-Security-Policy":
      `default-src 'none'; script-src 'self' ${baseUrl}; connect-src 'self' ${baseUrl}; style-src 'self';`
      + " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
  });
  next();
});
app.use("/static", express.static(fileURLToPath(new URL("static", import.meta.url))));

// Sign-in needs a session that stores the user, and the endpoint that the button sends its proof to.
app.use(
  session({
    name: "express_example",
    secret: SESSION_SECRET,
    resave: false,
    saveUninitialized: false,
    cookie: { maxAge: 8 * 60 * 60 * 1000, sameSite: "lax", secure: SECURE_COOKIES === "1" },
  }),
);
app.use("/auth/taproof", taproofExpress({ projectId, webhookSecret, guard: new MemoryGuard() }));

app.get("/", (req, res) => {
  const next = typeof req.query.next === "string" ? req.query.next : "/members";
  res.send(homePage({ baseUrl, projectId, user: signedIn(req), next }));
});

app.get("/members", requireSignedIn("/"), (req, res) => {
  res.send(membersPage(signedIn(req)));
});

app.listen(Number(PORT), "127.0.0.1", () => console.log(`The Express example: http://127.0.0.1:${PORT}`));
