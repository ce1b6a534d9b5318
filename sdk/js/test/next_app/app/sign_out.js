"use client";

export function SignOut() {
  const signOut = async () => {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/auth/taproof/sign-out", { method: "POST", headers, body: "{}" });
    location.assign((await answer.json()).location);
  };
  return <button onClick={signOut}>Sign out</button>;
}
