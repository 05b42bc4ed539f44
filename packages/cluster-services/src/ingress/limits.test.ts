/** Limits, the end of the server, and what is counted, with servers of their own. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { createServer as createTcpServer } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { backend, head, open, start } from "./testing.ts";

test("a body of the limit is sent on; a longer one gets 413, before the backend sees it where its length is announced", async (t) => {
  let begun = 0;
  const port = await backend(t, (request, response) => {
    begun++;
    let bytes = 0;
    request.on("data", (chunk: Buffer) => (bytes += chunk.length));
    request.on("end", () => response.end(`got ${bytes}`));
  });
  const ingress = await start(t, [port], { mostBodyBytes: 100 });
  const post = async (length: number, isChunked: boolean): Promise<string> => {
    const body = "x".repeat(length);
    const { state } = isChunked
      ? open(t, ingress.port, `${head("POST /", "Transfer-Encoding: chunked")}${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      : open(t, ingress.port, `${head("POST /", `Content-Length: ${length}`)}${body}`);
    await waitFor(() => /got|too large/.test(state.text) || state.isClosed);
    return /^HTTP\/1\.1 (\d+)/.exec(state.text)?.[1] ?? "closed";
  };
  assert.deepEqual([await post(100, false), await post(100, true), begun], ["200", "200", 2]);
  assert.deepEqual([await post(101, false), begun], ["413", 2]);
  assert.equal(await post(101, true), "413");
  const { state } = open(t, ingress.port, head("POST /", "Content-Length: 101"));
  await waitFor(() => state.text.includes("too large"), { timeoutMs: 10_000, what: "a refusal before the body" });
});

test("a refusal ends the connection of a body that nobody reads, and no other; the refusal of HEAD has no body", async (t) => {
  const ingress = await start(t, []);
  const post = open(t, ingress.port, head("POST /", "Content-Length: 5"));
  await waitFor(() => post.state.isClosed);
  assert.match(post.state.text, /^HTTP\/1\.1 503 [\s\S]*\r\nconnection: close\r\n/i);
  const { socket, state } = open(t, ingress.port, head("HEAD /"));
  await waitFor(() => state.text.endsWith("\r\n\r\n"));
  assert.match(state.text, /^HTTP\/1\.1 503 [\s\S]*content-length: [1-9]/i);
  state.text = "";
  socket.write(head("GET /"));
  await waitFor(() => state.text.includes("no endpoints for this host and path\n"));
  assert.match(state.text, /^HTTP\/1\.1 503 /, "on the same connection, directly behind the head");
});

test("requests are counted by code and by who answered; a client that has gone counts as 499", async (t) => {
  const requests: ServerResponse[] = [];
  const port = await backend(t, (request, response) => {
    if (request.url === "/slow") requests.push(response);
    else response.end("ok");
  });
  const ingress = await start(t, [port]);
  const close = ["Connection: close"];
  for (const bytes of [head("GET /", ...close), head("GET /", ...close).replace("web.test", "other.test")]) {
    const { state } = open(t, ingress.port, bytes);
    await waitFor(() => state.isClosed);
  }
  const { socket } = open(t, ingress.port, head("GET /slow"));
  await waitFor(() => requests.length === 1);
  socket.destroy();
  for (const line of ['code="200",by="backend"', 'code="404",by="ingress"', 'code="499",by="ingress"'])
    await waitFor(async () => (await ingress.shown()).includes(`coxswain_ingress_requests_total{${line}} 1\n`), {
      what: line,
      timeoutMs: 10_000,
    });
  await waitFor(async () => (await ingress.shown()).includes("coxswain_ingress_connections 0\n"));
});

test("a request without a body and without effect when it is repeated is sent to another endpoint; one with a body, and a POST, is not", async (t) => {
  const live = await backend(t, (request, response) => request.resume().once("end", () => response.end("ok")));
  const closed = createServer();
  const deadPort = await listening(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  const ingress = await start(t, [deadPort, live]);
  const codes = async (method: string, body = ""): Promise<string[]> => {
    const found: string[] = [];
    const headers = ["Connection: close", ...(body === "" ? [] : [`Content-Length: ${body.length}`])];
    for (let i = 0; i < 2; i++) {
      const { state } = open(t, ingress.port, head(`${method} /`, ...headers) + body);
      await waitFor(() => state.isClosed);
      found.push(/^HTTP\/1\.1 (\d+)/.exec(state.text)?.[1] ?? "");
    }
    return found.sort();
  };
  assert.deepEqual(
    [
      await codes("PUT"),
      await codes("DELETE"),
      await codes("OPTIONS"),
      await codes("HEAD"),
      await codes("PUT", "body"),
      await codes("POST"),
      await codes("PATCH"),
    ],
    [...Array.from({ length: 4 }, () => ["200", "200"]), ["200", "502"], ["200", "502"], ["200", "502"]],
  );
});

test("an absolute target without a path is that of the root", async (t) => {
  const port = await backend(t, (request, response) => response.end(`path ${request.url} `));
  const ingress = await start(t, [port]);
  for (const [target, want] of [
    ["http://web.test", "path / "],
    ["http://web.test?a=1", "path /?a=1 "],
    ["http://WEB.test/b", "path /b "],
  ] as const) {
    const { state } = open(t, ingress.port, head(`GET ${target}`, "Connection: close"));
    await waitFor(() => state.isClosed);
    assert.ok(state.text.includes(want), state.text);
  }
});

test("at its end the server lets requests complete for the grace, and cuts off the others", async (t) => {
  const responses: ServerResponse[] = [];
  const port = await backend(t, (_, response) => void responses.push(response));
  const ingress = await start(t, [port]);
  const { state } = open(t, ingress.port, head("GET /"));
  await waitFor(() => responses.length === 1);
  const closing = ingress.server.close(60_000);
  await settle(10);
  assert.equal(state.isClosed, false);
  responses[0]?.end("done");
  await closing; // the connection that is kept ends with its last request
  await waitFor(() => state.isClosed);
  assert.match(state.text, /done$/);

  const other = await start(t, [port]);
  const late = open(t, other.port, head("GET /"));
  await waitFor(() => responses.length === 2);
  const cut = other.server.close(50);
  await waitFor(() => late.state.isClosed, { timeoutMs: 10_000, what: "the connection to be cut" });
  await cut;
  assert.equal(late.state.text, "");
});

test("a connection of HTTP/1.1 over TLS ends with its last request, too, and one that is idle at once", async (t) => {
  const responses: ServerResponse[] = [];
  const port = await backend(t, (_, response) => void responses.push(response));
  const ingress = await start(t, [port]);
  const closed: string[] = [];
  const received: Record<string, string> = { busy: "", idle: "" };
  for (const name of ["busy", "idle"]) {
    const socket = connectTls({
      port: ingress.server.httpsPort,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    t.after(() => void socket.destroy());
    socket.on("error", () => {}).on("close", () => closed.push(name));
    socket.setEncoding("latin1").on("data", (chunk: string) => (received[name] += chunk));
    await once(socket, "secureConnect");
    const before = responses.length;
    socket.write(head("GET /"));
    await waitFor(() => responses.length > before);
  }
  responses[1]?.end("first");
  await waitFor(() => received["idle"]?.endsWith("first"));
  const closing = ingress.server.close(60_000);
  await waitFor(() => closed.includes("idle"));
  responses[0]?.end("second");
  await closing;
  await waitFor(() => closed.length === 2);
  assert.match(received["busy"] ?? "", /second$/);
});

test("a body whose chunks have long extensions is refused with its own code", async (t) => {
  const { server, shown } = await start(t, [await backend(t, () => {})]);
  const long = `1;${"x".repeat(17 << 10)}\r\na\r\n`;
  const { state } = open(t, server.httpPort, `${head("POST /", "Transfer-Encoding: chunked")}${long}`);
  await waitFor(() => state.isClosed, { what: "the end of the connection" });
  assert.equal(state.text, "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\n\r\n");
  assert.match(await shown(), /^coxswain_ingress_refused_total\{reason="malformed"\} 1$/m);
});

test("what is no hello of TLS is refused, counted, and leaves the port to others", async (t) => {
  const port = await backend(t, (_, response) => void response.end("ok"));
  const { server, shown } = await start(t, [port]);
  const { state } = open(t, server.httpsPort, head("GET /"));
  await waitFor(() => state.isClosed, { what: "the end of the connection" });
  assert.match(await shown(), /^coxswain_ingress_refused_total\{reason="tls"\} 1$/m);
  const other = open(t, server.httpPort, head("GET /", "Connection: close"));
  await waitFor(() => other.state.text.endsWith("ok"), { what: "the answer" });
});

test("when one port cannot be had the other is given back", async (t) => {
  const taken = createServer();
  const httpsPort = await listening(t, taken);
  const free = createServer();
  const httpPort = await listening(t, free);
  await new Promise((resolve) => free.close(resolve));
  await assert.rejects(start(t, [], { httpsPort, httpPort }), { message: `cannot listen on port ${httpsPort}` });
  const again = createServer();
  again.listen(httpPort, "127.0.0.1");
  await once(again, "listening");
  again.close();
});

test("the requests of a client that has gone are ended at the backend, and its connections no longer count, however it went", async (t) => {
  let left = 0;
  const port = await backend(t, (_, response) => void response.once("close", () => left++));
  const ingress = await start(t, [port], { connectionsPerClient: 1 });
  for (const [i, end] of ["destroy", "resetAndDestroy"].entries()) {
    const { socket } = open(t, ingress.port, head("GET /"));
    await waitFor(async () => (await ingress.shown()).includes("coxswain_ingress_connections 1\n"));
    await settle(20);
    socket[end as "destroy"]();
    await waitFor(() => left === i + 1, { what: `the end of the request after ${end}`, timeoutMs: 10_000 });
    await waitFor(async () => (await ingress.shown()).includes("coxswain_ingress_connections 0\n"), { timeoutMs: 10_000 });
  }
  const first = open(t, ingress.port, head("GET /"));
  await waitFor(async () => (await ingress.shown()).includes("coxswain_ingress_connections 1\n"));
  const second = open(t, ingress.port, head("GET /"));
  await waitFor(() => second.state.isClosed);
  assert.equal(first.state.isClosed, false);
  assert.match(await ingress.shown(), /^coxswain_ingress_refused_total\{reason="connections"\} 1$/m);
});

test("an endpoint that refuses is passed over; the failure of the only one is no retry", async (t) => {
  const live = await backend(t, (_, response) => response.end("ok"));
  const codesOf = async (ends: readonly number[]): Promise<{ codes: (string | undefined)[]; retries: string | undefined }> => {
    const ingress = await start(t, ends);
    const codes: (string | undefined)[] = [];
    for (let i = 0; i < 2; i++) {
      const { state } = open(t, ingress.port, head("GET /", "Connection: close"));
      await waitFor(() => state.isClosed);
      codes.push(/^HTTP\/1\.1 (\d+)/.exec(state.text)?.[1]);
    }
    return { codes, retries: /^coxswain_ingress_retries_total (\d+)$/m.exec(await ingress.shown())?.[1] };
  };
  assert.deepEqual(await codesOf([0, live]), { codes: ["200", "200"], retries: "1" }); // nothing can listen on port 0
  assert.deepEqual(await codesOf([0]), { codes: ["502", "502"], retries: "0" });
});

test("a refusal of a body over HTTP/2 leaves the connection to other requests", async (t) => {
  const ingress = await start(t, []);
  const client = connectHttp2(`https://127.0.0.1:${ingress.server.httpsPort}`, { rejectUnauthorized: false });
  t.after(() => client.destroy());
  const codeOf = async (method: string): Promise<unknown> => {
    const request = client.request(
      { ":method": method, ":authority": "web.test", ":path": "/" },
      { endStream: method === "GET" },
    );
    request.on("error", () => {});
    if (method === "POST") request.write("the body");
    const [headers] = (await once(request, "response")) as [Record<string, unknown>];
    request.close();
    return headers[":status"];
  };
  assert.deepEqual([await codeOf("POST"), await codeOf("GET")], [503, 503]);
});

test("an answer that HTTP/2 cannot have is 502, and the endpoint's connection does not wait for a reader of its body", async (t) => {
  const ends: Promise<unknown>[] = [];
  const server = createTcpServer((socket) => {
    ends.push(once(socket, "close"));
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 700 Odd\r\nContent-Length: 1000000\r\n\r\nab"));
  });
  const ingress = await start(t, [await listening(t, server)]);
  const client = connectHttp2(`https://127.0.0.1:${ingress.server.httpsPort}`, { rejectUnauthorized: false });
  t.after(() => client.destroy());
  const request = client.request({ ":authority": "web.test", ":path": "/" });
  const [headers] = (await once(request, "response")) as [Record<string, unknown>];
  assert.equal(headers[":status"], 502);
  await ends[0];
});

test("a server that has ended within its grace leaves no timer", async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const ingress = await start(t, []);
  await ingress.server.close(3_600_000);
  await waitFor(() => timers() <= before, { what: "the grace's timer to be cancelled" });
});
