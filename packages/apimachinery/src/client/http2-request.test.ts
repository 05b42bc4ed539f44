import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { finished } from "node:stream/promises";
import { type TestContext, test } from "node:test";
import { waitFor } from "../testing/wait-for.ts";
import { aPipe, type ClientPipe, pipeOver } from "../transport/http2/testing/client-pipe.ts";
import { errorCodes } from "../transport/http2/wire/connection-error.ts";
import { flags, frame, frameTypes, numberFrame, settings } from "../transport/http2/wire/frames.ts";
import { encodeFields } from "../transport/http2/wire/hpack.ts";
import { InFlight, requestOverHttp2 } from "./http2-request.ts";
import { readBody } from "./transport.ts";
import { isConnectionLost, wasNotProcessed } from "./transport-errors.ts";
import type { TransportRequest, TransportResponse } from "./transport-messages.ts";

const url = new URL("https://api:6443");
const head = (id: number, ...fields: string[]): Buffer =>
  frame(frameTypes.headers, flags.endHeaders, id, encodeFields([":status", "200", ...fields]));
const data = (id: number, text: string, flag = 0): Buffer => frame(frameTypes.data, flag, id, Buffer.from(text));
const end = (id: number): Buffer => data(id, "", flags.endStream);
const reset = (code: number): Buffer => numberFrame(frameTypes.resetStream, 1, code);

function send(pipe: ClientPipe, request: Partial<TransportRequest> = {}, inFlight = new InFlight()) {
  const seen = { released: 0 };
  const response = requestOverHttp2(pipe.made, url, { method: "GET", path: "/x", headers: {}, ...request }, inFlight, () => {
    seen.released++;
  });
  response.catch(() => {});
  return { response, seen };
}

async function begun(t: TestContext, request: Partial<TransportRequest> = {}) {
  const pipe = aPipe(t);
  await pipe.begin();
  const sent = send(pipe, request);
  return { pipe, ...sent, first: await pipe.turn() };
}

test("a request without a body is one frame, one with a body says its length", async (t) => {
  const { first, pipe } = await begun(t);
  assert.match(first.join(), /^headers 1 \d+ end$/);
  send(pipe, { method: "POST", body: "äb" });
  assert.match((await pipe.turn()).join(), /^headers 3 \d+,data 3 3 end$/);
});

test("a response has status, headers and body; trailers are not headers", async (t) => {
  const { pipe, response, seen } = await begun(t);
  await pipe.says(head(1, "content-type", "text/plain", "retry-after", "1"), data(1, "one "));
  const { status, headers } = await response;
  const whole = readBody(await response);
  assert.deepEqual([status, headers["content-type"], headers["retry-after"], seen.released], [200, "text/plain", "1", 0]);
  const trailers = frame(frameTypes.headers, flags.endHeaders | flags.endStream, 1, encodeFields(["retry-after", "2"]));
  await pipe.says(data(1, "two"), trailers);
  assert.deepEqual([(await whole).toString(), headers["retry-after"], seen.released], ["one two", "1", 1]);
});

for (const { name, says, want } of [
  { name: "refused", says: reset(errorCodes.refusedStream), want: wasNotProcessed },
  { name: "reset without a reason", says: reset(errorCodes.cancel), want: isConnectionLost },
  { name: "ended without a head", says: end(1), want: (err: unknown) => /protocol/.test(String(err)) },
  { name: "reset for an error", says: reset(errorCodes.internal), want: (err: unknown) => !isConnectionLost(err) },
]) {
  test(`a request that is ${name} fails as such, and gives its stream back`, async (t) => {
    const { pipe, response, seen } = await begun(t);
    await pipe.says(says);
    await assert.rejects(response, want);
    assert.equal(seen.released, 1);
  });
}

const readers: [string, (response: TransportResponse) => Promise<unknown>][] = [
  ["as a whole", readBody],
  ["as a stream", async ({ body }) => Buffer.concat(await body.toArray())],
  ["part by part", async (response) => Buffer.concat(await Array.fromAsync(partsOf(response)))],
];

function partsOf(response: TransportResponse): AsyncIterableIterator<Buffer> {
  assert.ok(response.parts !== undefined);
  return response.parts();
}

for (const { name, says, want } of [
  { name: "the server resets it", says: reset(errorCodes.internal), want: /Stream closed with error code 2/ },
  { name: "the server ends it early", says: end(1), want: /the answer was cut off/ },
  { name: "the server sends more than it said", says: data(1, "56789", flags.endStream), want: /the answer was cut off/ },
]) {
  for (const [form, read] of readers) {
    test(`a body that is read ${form} fails when ${name}`, async (t) => {
      const { pipe, response, seen } = await begun(t);
      await pipe.says(head(1, "content-length", "8"), data(1, "1234"));
      const reading = assert.rejects(read(await response), want);
      await pipe.says(says);
      await reading;
      assert.equal(seen.released, 1);
    });

    test(`a body of which ${name} before it is read ${form} fails when it is read`, async (t) => {
      const { pipe, response, seen } = await begun(t);
      await pipe.says(head(1, "content-length", "8"), data(1, "1234"), says);
      await assert.rejects(read(await response), want);
      assert.equal(seen.released, 1);
    });
  }
}

for (const [form, read] of readers) {
  test(`a body of several frames, some of which arrive before it is read ${form}, is complete`, async (t) => {
    const { pipe, response, seen } = await begun(t);
    await pipe.says(head(1), data(1, "one "), data(1, "two "));
    const reading = read(await response);
    await pipe.says(data(1, "three"), end(1));
    assert.deepEqual([String(await reading), seen.released], ["one two three", 1]);
    const second = send(pipe);
    await pipe.turn();
    await pipe.says(head(3, "content-length", "5"), data(3, "early"), end(3));
    assert.equal(String(await read(await second.response)), "early");
  });
}

for (const [status, method] of [
  ["204", "GET"],
  ["304", "GET"],
  ["200", "HEAD"],
] as const)
  test(`the length that a response of ${status} to ${method} tells is not that of its body`, async (t) => {
    const { pipe, response, seen } = await begun(t, { method });
    const fields = encodeFields([":status", status, "content-length", "8"]);
    await pipe.says(frame(frameTypes.headers, flags.endHeaders | flags.endStream, 1, fields));
    assert.deepEqual([String(await readBody(await response)), seen.released], ["", 1]);
  });

test("a body that is read as a whole returns its bytes to the server's window, those from before too", async (t) => {
  const pipe = pipeOver(t, { streamWindowBytes: 300_000, connectionWindowBytes: 1 << 30 });
  await pipe.begin();
  const { response } = send(pipe);
  await pipe.turn();
  const frames = (count: number): Buffer[] => Array.from({ length: count }, () => data(1, "x".repeat(16_000)));
  assert.deepEqual(await pipe.says(head(1), ...frames(18)), [], "nobody reads it yet");
  const reading = readBody(await response);
  assert.deepEqual(await pipe.turn(), ["windowUpdate 1 288000"]);
  assert.match((await pipe.says(...frames(18))).join(), /^windowUpdate 1 \d{6}$/, "while it is read, too");
  await pipe.says(end(1));
  assert.equal((await reading).length, 36 * 16_000);
});

test("a body fails when the connection is lost, and the next request was not processed", async (t) => {
  const { pipe, response, seen } = await begun(t);
  await pipe.says(head(1), data(1, "1"));
  const reading = assert.rejects(readBody(await response), isConnectionLost);
  pipe.socket.destroy(new Error("read ECONNRESET"));
  await reading;
  assert.equal(seen.released, 1);
  await assert.rejects(send(pipe).response, wasNotProcessed);
});

test("requests that a closing server has not seen count as not processed, the others end", async (t) => {
  const { pipe, response } = await begun(t);
  const second = send(pipe);
  await pipe.says(head(1), frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 0])));
  await assert.rejects(second.response, wasNotProcessed);
  await pipe.says(data(1, "whole"), end(1));
  assert.equal((await readBody(await response)).toString(), "whole");
});

test("the response to HEAD has a length and no body", async (t) => {
  const { pipe, response } = await begun(t, { method: "HEAD" });
  await pipe.says(
    frame(frameTypes.headers, flags.endHeaders | flags.endStream, 1, encodeFields([":status", "200", "content-length", "8"])),
  );
  assert.equal((await readBody(await response)).length, 0);
});

for (const { name, before, read } of [
  { name: "before its head", before: [], read: readBody },
  ...readers.map(([form, read]) => ({ name: `while its body is read ${form}`, before: [head(1), data(1, "1")], read })),
]) {
  test(`a request that is aborted ${name} is reset and fails with the caller's reason`, async (t) => {
    const stop = new AbortController();
    const { pipe, response, seen } = await begun(t, { signal: stop.signal });
    await pipe.says(...before);
    const failed = assert.rejects(async () => read(await response), /never mind/);
    await pipe.turn();
    stop.abort(new Error("never mind"));
    await failed;
    assert.deepEqual(await pipe.turn(), [`resetStream 1 ${errorCodes.cancel}`]);
    assert.equal(seen.released, 1);
  });
}

test("a request that is aborted before it is sent sends nothing", async (t) => {
  const pipe = aPipe(t);
  await pipe.begin();
  const { response, seen } = send(pipe, { signal: AbortSignal.abort(new Error("never mind")) });
  await assert.rejects(response, /never mind/);
  assert.deepEqual([await pipe.turn(), seen.released], [[], 1]);
});

test("requests of one signal share a listener, which is gone with the last of them; its abort ends those in flight", async (t) => {
  const stop = new AbortController();
  const { signal } = stop;
  const listeners = (): number => getEventListeners(signal, "abort").length;
  const inFlight = new InFlight();
  const pipe = aPipe(t);
  await pipe.begin();
  const sent = [1, 3, 5].map(() => send(pipe, { signal }, inFlight));
  await pipe.turn();
  assert.equal(listeners(), 1);
  for (const id of [1, 3, 5]) await pipe.says(head(id), end(id));
  assert.equal(listeners(), 0);

  const later = [7, 9, 11].map(() => send(pipe, { signal }, inFlight));
  await pipe.turn();
  await pipe.says(head(7), end(7));
  assert.equal(listeners(), 1);
  stop.abort(new Error("never mind"));
  assert.deepEqual((await pipe.turn()).toSorted(), [`resetStream 11 ${errorCodes.cancel}`, `resetStream 9 ${errorCodes.cancel}`]);
  assert.equal((await later[0]!.response).status, 200);
  for (const { response } of later.slice(1)) await assert.rejects(response, /never mind/);
  assert.deepEqual(
    [...sent, ...later].map(({ seen }) => seen.released),
    [1, 1, 1, 1, 1, 1],
  );
  assert.equal(listeners(), 0);
});

test("a body that is destroyed resets its stream; one that was read does not", async (t) => {
  const { pipe, response, seen } = await begun(t);
  await pipe.says(head(1), data(1, "1"));
  (await response).body.destroy();
  assert.deepEqual([await pipe.turn(), seen.released], [[`resetStream 1 ${errorCodes.cancel}`], 1]);
  const second = send(pipe);
  await pipe.turn();
  await pipe.says(head(3), end(3));
  await readBody(await second.response);
  assert.deepEqual([await pipe.turn(), second.seen.released], [[], 1]);
});

test("a reader of chunks returns read bytes to the server's window, and resets the stream when it stops", async (t) => {
  const pipe = pipeOver(t, { streamWindowBytes: 20_000, connectionWindowBytes: 1 << 30 });
  await pipe.begin();
  const { response, seen } = send(pipe);
  await pipe.turn();
  assert.deepEqual(await pipe.says(head(1), data(1, "x".repeat(6_000)), data(1, "y".repeat(6_000))), [], "nobody reads it yet");
  const parts = partsOf(await response);
  assert.equal((await parts.next()).value?.length, 12_000);
  assert.deepEqual(await pipe.turn(), ["windowUpdate 1 12000"]);
  const [asked] = await Promise.all([parts.next(), pipe.says(data(1, "z".repeat(12_000)))]);
  assert.equal(asked.value?.length, 12_000);
  await pipe.says(data(1, "unread"));
  const waiting = [await parts.return?.(), await parts.next()];
  assert.deepEqual(
    waiting.map((result) => result?.done),
    [true, true],
  );
  assert.deepEqual([(await pipe.turn()).at(-1), seen.released], [`resetStream 1 ${errorCodes.cancel}`, 1]);
});

test("a header value cannot contain the end of its line", async (t) => {
  const pipe = aPipe(t);
  await pipe.begin();
  const wrong: TransportRequest["headers"][] = [
    { "user-agent": "a\r\nauthorization: b" },
    { "x\0": "1" },
    { accept: ["a", "b\n"] },
  ];
  for (const headers of wrong) {
    const { response, seen } = send(pipe, { headers });
    await assert.rejects(response, /Invalid character in header content/);
    assert.equal(seen.released, 1);
  }
  await assert.rejects(send(pipe, { path: "/x\r\n" }).response, TypeError);
  assert.deepEqual(await pipe.turn(), []);
});

test("a slow reader applies backpressure only to its own stream of the connection", async (t) => {
  const pipe = pipeOver(t, { streamWindowBytes: 300_000, connectionWindowBytes: 1 << 30 });
  await pipe.begin();
  const [slow, other] = [send(pipe), send(pipe)];
  await pipe.turn();
  const full = "x".repeat(16_000);
  const frames = (id: number, count: number): Buffer[] => Array.from({ length: count }, () => data(id, full));
  assert.deepEqual(await pipe.says(head(1), ...frames(1, 18)), [], "nothing is returned unread");
  await pipe.says(head(3), data(3, "quick"), end(3));
  assert.equal((await readBody(await other.response)).toString(), "quick");
  const { body } = await slow.response;
  let got = 0;
  body.on("data", (chunk: Buffer) => (got += chunk.length));
  await waitFor(async () => (await pipe.turn()).includes("windowUpdate 1 288000"), { what: "the window" });
  await pipe.says(...frames(1, 18), end(1));
  await waitFor(() => got === 36 * 16_000, { what: "the body" });
});

test("a response before the end of the request body stops the upload", async (t) => {
  const pipe = aPipe(t, [settings.initialWindowSize, 10]);
  await pipe.begin();
  const { response } = send(pipe, { method: "POST", body: "x".repeat(100) });
  await pipe.turn();
  const early = [
    frame(frameTypes.headers, flags.endHeaders, 1, encodeFields([":status", "413"])),
    end(1),
    reset(errorCodes.none),
  ];
  assert.deepEqual(await pipe.says(...early), [`resetStream 1 ${errorCodes.cancel}`]);
  const { status } = await response;
  assert.deepEqual([status, (await readBody(await response)).length], [413, 0]);
});

test("a reader in pieces returns each byte once", async (t) => {
  const pipe = pipeOver(t, { streamWindowBytes: 20_000, connectionWindowBytes: 1 << 30 });
  await pipe.begin();
  const { response } = send(pipe);
  await pipe.turn();
  const seen = await pipe.says(head(1), data(1, "x".repeat(12_000)));
  const { body } = await response;
  let got = 0;
  body.on("data", (chunk: Buffer) => (got += chunk.length));
  for (let i = 1; i < 4; i++) {
    await waitFor(() => got === i * 12_000, { what: `piece ${i}` });
    seen.push(...(await pipe.turn()), ...(await pipe.says(data(1, "x".repeat(12_000)))));
  }
  await waitFor(() => got === 48_000, { what: "the last piece" });
  seen.push(...(await pipe.turn()), ...(await pipe.says(end(1))));
  await finished(body);
  const returned = seen.map((one) => Number(/^windowUpdate 1 (\d+)/.exec(one)?.[1] ?? 0)).reduce((sum, one) => sum + one, 0);
  assert.ok(returned > 0 && returned <= got, `${returned} of ${got}`);
});
