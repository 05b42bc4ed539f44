import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Api, ApiError, linesOf, pause } from "./api.ts";

/** A server on this machine. @returns its URL */
async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const isApiError = (code: number, message: string) => (err: unknown) =>
  err instanceof ApiError && err.code === code && err.message === message;

test("a request has the user's token, if there is one, and what it accepts", async (t) => {
  const seen: unknown[] = [];
  const url = await serve(t, ({ headers }, response) => {
    seen.push([headers.authorization, headers.accept]);
    response.end('{"a":1}');
  });
  assert.deepEqual(await new Api("secret").get(url), { a: 1 });
  assert.equal(await (await new Api("").open(url, undefined, "text/plain")).text(), '{"a":1}');
  assert.deepEqual(seen, [
    ["Bearer secret", "application/json"],
    [undefined, "text/plain"],
  ]);
});

for (const [what, body, message] of [
  ["the message of a Status", JSON.stringify({ message: "pods is forbidden" }), "pods is forbidden"],
  ["its text, when it is no Status", "gateway down", "gateway down"],
  ["its text, when its message is none", '{"message":7}', '{"message":7}'],
  ["its text, when its message is empty", '{"message":""}', '{"message":""}'],
  ["its code, when it has no text", "", "403 Forbidden"],
  ["500 characters of a long message", JSON.stringify({ message: "x".repeat(501) }), "x".repeat(500)],
  ["500 characters of a long text", "y".repeat(501), "y".repeat(500)],
] as const) {
  test(`a response with an error code fails with ${what}`, async (t) => {
    const url = await serve(t, (_, response) => response.writeHead(403).end(body));
    await assert.rejects(new Api("").get(url), isApiError(403, message));
  });
}

test("a server that cannot be reached, and a response that breaks off, have no code; an aborted request has its reason", async (t) => {
  const url = await serve(t, (_, response) => {
    response.writeHead(200, { "content-length": 100 }).write('{"a":');
    setImmediate(() => response.destroy());
  });
  await assert.rejects(new Api("").get(url), isApiError(0, "the response was interrupted"));
  await assert.rejects(new Api("").open("http://127.0.0.1:1/"), isApiError(0, "the API server cannot be reached"));
  const gone = new Error("gone");
  await assert.rejects(new Api("").open(url, AbortSignal.abort(gone)), (err) => err === gone);
});

test("a response is read line by line, in whatever pieces it comes; the rest is a line, too", async () => {
  const bytes = new TextEncoder().encode("one\n\ntwö\nlast");
  const pieces = async (size: number, mostChars?: number): Promise<string[]> => {
    const body = new ReadableStream({
      start(stream) {
        for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
        stream.close();
      },
    });
    return (await Array.fromAsync(linesOf(new Response(body), mostChars))).flat();
  };
  for (const size of [1, 2, 3, 100]) assert.deepEqual(await pieces(size), ["one", "", "twö", "last"], `${size} bytes`);
  assert.deepEqual(await pieces(1, 2), ["on", "", "tw", "la"]);
  assert.deepEqual(await Array.fromAsync(linesOf(new Response(null))), []);
  assert.deepEqual(await Array.fromAsync(linesOf(new Response("a\n"))), [["a"]]);
});

test("who stops reading lines ends the response", async () => {
  let isCancelled = false;
  const body = new ReadableStream({
    pull: (stream) => stream.enqueue(new TextEncoder().encode("line\n")),
    cancel() {
      isCancelled = true;
    },
  });
  for await (const lines of linesOf(new Response(body))) {
    assert.deepEqual(lines, ["line"]);
    break;
  }
  assert.equal(isCancelled, true);
});

test("a pause ends after its time, or with its signal, and leaves nothing behind", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const ending = new AbortController();
  let ended = 0;
  const count = (): void => void ended++;
  const [long, short] = [pause(1_000, ending.signal).then(count), pause(10, ending.signal).then(count)];
  t.mock.timers.tick(9);
  await Promise.resolve();
  assert.equal(ended, 0);
  t.mock.timers.tick(1);
  await short;
  assert.equal(ended, 1);
  ending.abort();
  await long;
  assert.equal(ended, 2);
  await pause(1_000, ending.signal);
});
