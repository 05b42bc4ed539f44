/** Aggregated servers with invalid responses. */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Aggregation, startAggregation } from "../testing/start-aggregation.ts";

const group = "hostile.example.com";
const root = `/apis/${group}/v1`;
const address = "127.0.10.210";
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/** The bytes sent for a path, and whether the connection ends then; `?` does not read the request's body. */
const answers: Readonly<Record<string, { readonly bytes: string; readonly end: boolean }>> = {
  [root]: { bytes: ok, end: false },
  [`${root}/silent`]: { bytes: "", end: true },
  [`${root}/noise`]: { bytes: "SSH-2.0-OpenSSH_9.2\r\n\r\n", end: true },
  [`${root}/switch`]: {
    bytes: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfree bytes",
    end: false,
  },
  [`${root}/headers`]: { bytes: `HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(1 << 20)}\r\n\r\n`, end: true },
  [`${root}/short`]: { bytes: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", end: true },
  [`${root}/chunk`]: { bytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", end: true },
  [`${root}/early`]: { bytes: "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n", end: true },
  [`${root}/twice`]: { bytes: `${ok}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother`, end: false },
};

let setup: Aggregation;
let hostile: Server;
const sockets = new Set<TLSSocket>();
let switched: TLSSocket | undefined;
before(async () => {
  setup = await startAggregation();
  const ca = await newCa({ commonName: "ca" });
  const pair = await newCertificate({ commonName: "a", dnsNames: ["hostile.default.svc"], usages: ["server"], ca });
  hostile = createServer({ cert: pair.certPem, key: pair.keyPem }, (socket: TLSSocket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      const path = /^[A-Z]+ ([^ ?]+)/.exec(chunk.toString("latin1"))?.[1] ?? "";
      const answer = answers[path];
      if (path.endsWith("/switch")) switched = socket;
      if (answer === undefined) return; // the rest of a body
      socket.write(answer.bytes);
      if (answer.end) socket.end();
    });
  });
  await new Promise<void>((resolve) => hostile.listen(0, address, resolve));
  const { port } = hostile.address() as AddressInfo;
  await setup.makeService("hostile", address, port);
  await setup.makeEndpoints("hostile");
  await setup.register(group, "hostile", { port, caBundle: Buffer.from(ca.certPem).toString("base64") });
  await setup.whenReason(group, "Passed");
});
after(async () => {
  await setup.stop();
  hostile.close();
  // Connections without a response, as to /openapi/v2, would stay open for a minute.
  for (const socket of sockets) socket.destroy();
});

/** The status and the received part of the response; `broken` when it was not complete. */
function send(path: string, method = "GET", body?: Buffer): Promise<{ code: number; text: string; broken: boolean }> {
  const session = connectHttp2(setup.server.url, { ca: setup.server.ca });
  session.on("error", () => {});
  const headers = { ":method": method, ":path": root + path, authorization: `Bearer ${setup.server.adminToken}` };
  const stream = session.request(headers, { endStream: body === undefined });
  stream.on("error", () => {});
  if (body !== undefined) stream.end(body);
  return new Promise((resolve) => {
    let [code, text, ended] = [0, "", false];
    stream.once("response", (received) => {
      code = Number(received[":status"]);
    });
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    stream.once("end", () => {
      ended = true;
    });
    stream.once("close", () => {
      session.destroy();
      resolve({ code, text, broken: !ended || stream.rstCode !== 0 });
    });
  });
}

for (const { name, path, want } of [
  { name: "nothing", path: "/silent", want: "error trying to reach service: EOF\n" },
  { name: "no HTTP", path: "/noise", want: "error trying to reach service: " },
  {
    name: "an upgrade that was not requested",
    path: "/switch",
    want: 'backend tried to switch protocol "x" when "" was requested\n',
  },
  { name: "header block exceeds the limits", path: "/headers", want: "error trying to reach service: " },
]) {
  test(`a server that answers with ${name} is 503`, async () => {
    const { code, text, broken } = await send(path);
    assert.deepEqual([code, broken], [503, false], text);
    assert.ok(text.startsWith(want), text);
  });
}

test("a connection that was upgraded without a request is closed", async () => {
  await send("/switch");
  await waitFor(() => switched?.destroyed === true, { what: "its end" });
});

for (const path of ["/short", "/chunk"]) {
  test(`an answer that breaks off is not given as a whole one: ${path}`, async () => {
    const { code, broken } = await send(path);
    assert.deepEqual([code, broken], [200, true]);
  });
}

test("an answer that comes before the request is whole is passed on", async () => {
  const { code, text } = await send("/early", "POST", Buffer.alloc(1 << 20, "x"));
  assert.deepEqual([code, text], [413, "no\n"]);
});

test("bytes after an answer are not read as the next answer", async () => {
  for (let i = 0; i < 5; i++) assert.equal((await send("/twice")).text, "{}");
  assert.equal((await send("")).text, "{}");
});

test("after all hostile answers the API server is ready", async () => {
  assert.equal((await setup.server.request("GET", "/readyz")).text, "ok");
});
