// A small implementation of RFC 6455 for the tests, because Debian's node has no WebSocket. It sends whole
// frames of any length, joins fragments, answers pings and has close codes, but no extensions.
import { createHash, randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const acceptance = (key) => createHash("sha1").update(key + guid).digest("base64");

function encode(opcode, payload, isMasked) {
  const length = payload.length;
  const head = length < 126 ? Buffer.from([0x80 | opcode, length])
    : length < 65_536 ? Buffer.from([0x80 | opcode, 126, length >> 8, length & 255])
      : Buffer.concat([Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0]), Buffer.alloc(4)]);
  if (length >= 65_536) head.writeUInt32BE(length, 6);
  if (!isMasked) return Buffer.concat([head, payload]);
  head[1] |= 0x80;
  const mask = randomBytes(4);
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ mask[index & 3])]);
}

/** One end of a connection: sends texts, and reports received texts and the end. */
class Channel {
  #rest = Buffer.alloc(0);
  #parts = [];
  #code = 1006;
  isOpen = true;

  constructor(socket, isClient) {
    Object.assign(this, { socket, isClient });
    socket.setNoDelay(true);
    socket.on("data", (data) => this.#read(data));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isOpen = false;
      this.onclose?.(this.#code);
    });
  }

  send(text) {
    if (this.isOpen) this.socket.write(encode(1, Buffer.from(text), this.isClient));
  }

  close(code = 1000) {
    if (!this.isOpen) return;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.socket.end(encode(8, payload, this.isClient));
    this.isOpen = false;
  }

  /** Closes the connection without a close frame. */
  cut() {
    this.socket.destroy();
  }

  begin(head) {
    if (head.length) this.#read(head);
  }

  #read(data) {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const rest = this.#rest;
      if (rest.length < 2) return;
      let length = rest[1] & 127;
      let at = 2;
      if (length === 126) {
        if (rest.length < 4) return;
        [length, at] = [rest.readUInt16BE(2), 4];
      } else if (length === 127) {
        if (rest.length < 10) return;
        [length, at] = [Number(rest.readBigUInt64BE(2)), 10];
      }
      const isMasked = (rest[1] & 128) !== 0;
      const start = at + (isMasked ? 4 : 0);
      if (rest.length < start + length) return;
      let payload = rest.subarray(start, start + length);
      if (isMasked) payload = payload.map((byte, index) => byte ^ rest[at + (index & 3)]);
      this.#rest = rest.subarray(start + length);
      this.#take(rest[0] & 15, (rest[0] & 128) !== 0, payload);
    }
  }

  #take(opcode, isFinal, payload) {
    if (opcode === 8) {
      this.#code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      if (this.isOpen) this.close(this.#code === 1005 ? 1000 : this.#code);
      this.socket.end();
    } else if (opcode === 9) {
      this.socket.write(encode(10, payload, this.isClient));
    } else if (opcode < 3) {
      this.#parts.push(payload);
      if (isFinal) this.ontext?.(Buffer.concat(this.#parts.splice(0)).toString());
    }
  }
}

/** Accepts an upgrade of a node server. */
export function accept(request, socket, head, protocol) {
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${acceptance(request.headers["sec-websocket-key"])}\r\n` +
      `Sec-WebSocket-Protocol: ${protocol}\r\n\r\n`);
  const channel = new Channel(socket, false);
  channel.begin(head);
  return channel;
}

/** A browser's `WebSocket`, as far as the client uses it. */
export class TinyWebSocket {
  readyState = 0;

  constructor(url, protocol) {
    const key = randomBytes(16).toString("base64");
    const headers = {
      Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key,
    };
    if (protocol) headers["Sec-WebSocket-Protocol"] = protocol;
    const web = url.startsWith("wss") ? https : http;
    this.request = web.request(url.replace(/^ws/, "http"), { headers, agent: false });
    this.request.on("upgrade", (response, socket, head) => {
      this.channel = new Channel(socket, true);
      this.channel.ontext = (data) => this.onmessage?.({ data });
      this.channel.onclose = (code) => this.#end(code);
      if (response.headers["sec-websocket-accept"] !== acceptance(key)) return this.channel.cut();
      this.readyState = 1;
      this.onopen?.();
      this.channel.begin(head);
    });
    this.request.on("response", (response) => {
      response.resume();
      this.#end(1006);
    });
    this.request.on("error", () => this.#end(1006));
    this.request.end();
  }

  #end(code) {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code });
  }

  send(text) {
    this.channel.send(text);
  }

  close(code) {
    if (this.channel) this.channel.close(code);
    else this.request.destroy();
    this.readyState = this.readyState === 3 ? 3 : 2;
  }
}
