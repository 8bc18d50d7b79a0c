// What is posted goes to all who listen: a broadcast with ws.
const http = require("node:http");
const { WebSocketServer } = require("ws");

const server = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts);
  for (const listener of listeners.clients) listener.send(text, { binary: false });
  response.end();
});
const listeners = new WebSocketServer({ server, path: "/listen", perMessageDeflate: false });
server.listen(Number(process.argv[2]), "127.0.0.1", 4096);
