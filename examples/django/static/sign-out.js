// A POST with JSON: the server refuses requests that a form or another site can send.
document.querySelector("#sign-out").addEventListener("click", async () => {
  const response = await fetch("/auth/taproof/sign-out", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: "{}",
  });
  const answer = await response.json();
  location.assign(answer.location ?? "/");
});
