// What both peers on Node share: they listen on the port they are given, and /bench/decide is added to their routes.

import http from 'node:http';

async function readForm(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return new URLSearchParams(Buffer.concat(parts).toString());
}

/** Serve on loopback. `decide(userCode)` lets the simulated user approve, and returns whether that was done. */
export function serve(port, answer, decide) {
  const server = http.createServer(async (request, response) => {
    if (request.url !== '/bench/decide') {
      answer(request, response);
      return;
    }
    let isDone = false;
    try {
      isDone = await decide((await readForm(request)).get('user_code'));
    } catch (error) {
      console.error(error);
    }
    response.writeHead(isDone ? 200 : 409, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ approved: isDone }));
  });
  server.keepAliveTimeout = 0; // Connections stay open until the load generator closes them.
  server.listen(port, '127.0.0.1');
}
