/** How a client handles failures: it retries, waits, renews its credentials, or returns the error. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { configMaps } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { settle } from "../testing/wait-for.ts";
import { newClient } from "./client.ts";
import type { ClientConfig } from "./config.ts";
import { ConnectionLost, NotProcessed } from "./transport-errors.ts";
import type { TransportRequest } from "./transport-messages.ts";

type Answer = Error | { status: number; retryAfter?: string };

/** A client whose server gives these responses; the last one repeats. */
function aClient(answers: Answer[], config: Partial<ClientConfig> = {}) {
  const clock = newFakeClock();
  const seen: TransportRequest[] = [];
  const bodies: Readable[] = [];
  const reported: string[] = [];
  const transport = {
    async request(request: TransportRequest) {
      seen.push(request);
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) as Answer;
      if (answer instanceof Error) throw answer;
      const body = Readable.from([Buffer.from("{}")]);
      bodies.push(body);
      const headers = answer.retryAfter === undefined ? {} : { "retry-after": answer.retryAfter };
      return { status: answer.status, headers, body };
    },
    certificateFault: () => "certificate has expired",
    reconnect() {},
    close() {},
  };
  const observer = {
    rateLimited: (method: string, _: string, ms: number) => void reported.push(`${method} waited ${ms}`),
    requested: (method: string, host: string, status: string) => void reported.push(`${method} ${host} ${status}`),
  };
  const client = newClient({ host: "https://api:6443/base", qps: -1, ...config }, { clock, transport, observer });
  const call = (method = "GET", signal?: AbortSignal) =>
    client.raw(method, "/x", signal && { signal }).then(
      ({ status }) => status,
      (err: Error) => err.message,
    );
  return { clock, seen, bodies, reported, client, call };
}

const ok: Answer = { status: 200 };

for (const { name, answer, method = "GET", attempts } of [
  { name: "a request that was not processed", answer: new NotProcessed("refused"), method: "POST", attempts: 2 },
  { name: "a read whose connection was lost", answer: new ConnectionLost("lost"), attempts: 2 },
  { name: "a write whose connection was lost", answer: new ConnectionLost("lost"), method: "PUT", attempts: 1 },
  { name: "a read that failed otherwise", answer: new Error("no"), attempts: 1 },
  { name: "a write that is to be sent later", answer: { status: 429, retryAfter: "0" }, method: "POST", attempts: 2 },
  { name: "a read of a server that comes back", answer: { status: 503, retryAfter: "0" }, attempts: 2 },
  { name: "a busy server's that does not say when", answer: { status: 429 }, attempts: 1 },
  { name: "a busy server's that says a date", answer: { status: 429, retryAfter: "Fri, 31 Dec 1999 23:59:59 GMT" }, attempts: 1 },
  { name: "a refusal with a time", answer: { status: 404, retryAfter: "0" }, attempts: 1 },
  ...["ECONNRESET", "EPIPE", "ETIMEDOUT", "ERR_STREAM_PREMATURE_CLOSE"].flatMap((code) => {
    const answer = new Error("no answer", { cause: Object.assign(new Error(code), { code }) });
    return [
      { name: `a read that ended with ${code}`, answer, attempts: 2 },
      { name: `a write that ended with ${code}`, answer, method: "POST", attempts: 1 },
    ];
  }),
] as { name: string; answer: Answer; method?: string; attempts: number }[]) {
  test(`${name} is sent ${attempts === 1 ? "once" : "again"}`, async () => {
    const { call, seen, reported, clock } = aClient([answer, ok]);
    const pending = call(method);
    await clock.advance(0);
    const result = await pending;
    assert.equal(seen.length, attempts);
    if (attempts === 2) assert.equal(result, 200);
    const first = answer instanceof Error ? "<error>" : answer.status;
    const each = [`${method} waited 0`, `${method} api:6443 ${first}`, `${method} waited 0`, `${method} api:6443 200`];
    assert.deepEqual(reported, each.slice(0, 2 * attempts));
    assert.deepEqual([seen[0]?.path, seen[0]?.method], ["/base/x", method]);
  });
}

test("a body is encoded when the rate limiter lets its request pass, and once for all attempts", async () => {
  const { client, seen, clock } = aClient([new NotProcessed("refused"), { status: 201 }], { qps: 1, burst: 2 });
  const encoded: string[] = [];
  const create = (name: string) =>
    client.create(configMaps, {
      metadata: { namespace: "default", name },
      get data() {
        encoded.push(name);
        return { key: name };
      },
    });
  const all = Promise.all([create("a"), create("b"), create("c")]);
  await settle();
  assert.deepEqual([...new Set(encoded)], ["a", "b"], "the third waits");
  const before = encoded.length;
  await clock.advance(2_000);
  await all;
  assert.equal(encoded.length, before + before / 2);
  const names = seen.map(({ body }) => /"key":"(.)"/.exec(String(body))?.[1]);
  assert.deepEqual([seen.length, ...names.sort()], [4, "a", "a", "b", "c"]);
  for (const { headers } of seen) assert.equal(headers["content-type"], "application/json");
});

test("a request refused unprocessed is sent eleven times, with a pause from the third on; then it fails", async () => {
  const { call, seen, clock } = aClient([new NotProcessed("refused")]);
  const pending = call();
  await settle();
  assert.equal(seen.length, 2, "the first retry comes at once");
  await clock.advance(999);
  assert.equal(seen.length, 2);
  await clock.advance(9_001);
  assert.deepEqual([await pending, seen.length, clock.waiting], ["refused", 11, 0]);
});

test("a lost read is repeated as often as the client sets, an unprocessed request as often as by default", async () => {
  for (const [answer, sent] of [
    [new ConnectionLost("lost"), 2],
    [new NotProcessed("refused"), 11],
  ] as const) {
    const { call, seen, clock } = aClient([answer], { retriesOfLost: 1 });
    const pending = call();
    await clock.advance(20_000);
    assert.deepEqual([await pending, seen.length], [answer.message, sent]);
  }
});

test("a server that always answers 429 gets eleven requests, and the last response is returned", async () => {
  const { call, seen, bodies, clock } = aClient([{ status: 429, retryAfter: "2" }]);
  const pending = call();
  await clock.advance(1_999);
  assert.equal(seen.length, 1);
  await clock.advance(20_000);
  assert.deepEqual([await pending, seen.length], [429, 11]);
  await settle();
  assert.deepEqual(
    bodies.map(({ readableEnded }) => readableEnded),
    bodies.map(() => true),
    "no answer is left unread",
  );
});

test("an abort during a wait fails with its reason, and nothing more is sent", async () => {
  for (const answer of [{ status: 503, retryAfter: "60" }, new NotProcessed("refused")]) {
    const { call, seen, clock } = aClient([answer]);
    const stop = new AbortController();
    const pending = call("GET", stop.signal);
    await clock.advance(10);
    const before = seen.length;
    stop.abort(new Error("never mind"));
    assert.equal(await pending, "never mind");
    await clock.advance(100_000);
    assert.deepEqual([seen.length, clock.waiting], [before, 0]);
  }
});

test("an unprocessed request is not repeated after the caller's abort", async () => {
  const { call, seen } = aClient([new NotProcessed("refused")]);
  assert.deepEqual([await call("POST", AbortSignal.abort(new Error("never mind"))), seen.length], ["refused", 1]);
});

async function aTokenFile(t: TestContext): Promise<{ path: string; write(text: string): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), "cox-send-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "token");
  return { path, write: (text) => writeFile(path, text) };
}

test("after 401 the token file is read again and the request is retried once; a second 401 is returned", async (t) => {
  const { path, write } = await aTokenFile(t);
  await write("old");
  const { call, seen, bodies } = aClient([ok, { status: 401 }, ok, { status: 401 }], { tokenFile: path });
  assert.equal(await call(), 200);
  await write("new");
  assert.equal(await call(), 200);
  const tokens = () => seen.map(({ headers }) => headers?.["authorization"]);
  assert.deepEqual(tokens(), ["Bearer old", "Bearer old", "Bearer new"]);
  assert.equal(bodies[1]?.readableFlowing, true, "an answer that nobody reads would keep its connection");
  assert.deepEqual([await call(), seen.length], [401, 5]);
});

test("a token source is told which token was refused, and the request is repeated once; another request's token is kept", async () => {
  const asked: (string | undefined)[] = [];
  const tokens = ["one", "two", "three"];
  const tokenSource = async (refused: string | undefined): Promise<string> => {
    asked.push(refused);
    if (refused === tokens[0]) tokens.shift();
    return tokens[0] as string;
  };
  const { call, seen } = aClient([{ status: 401 }, { status: 401 }, ok, ok, { status: 401 }], { tokenSource });
  assert.deepEqual(await Promise.all([call(), call()]), [200, 200]);
  assert.deepEqual(asked, [undefined, undefined, "one", "one"]);
  const sent = () => seen.map(({ headers }) => headers?.["authorization"]);
  assert.deepEqual(sent(), ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]);
  assert.deepEqual([await call(), sent().slice(4)], [401, ["Bearer two", "Bearer three"]]);
});

test("after 401 a request with fixed credentials is not repeated", async () => {
  const { call, seen } = aClient([{ status: 401 }, ok], { token: "fixed" });
  assert.deepEqual([await call(), seen.length], [401, 1]);
});

test("each attempt counts towards the client's rate limit", async () => {
  const { call, seen, clock, reported } = aClient([{ status: 503, retryAfter: "0" }, ok], { qps: 1, burst: 1 });
  const pending = call();
  await settle();
  assert.equal(seen.length, 1);
  await clock.advance(1000);
  assert.equal(await pending, 200);
  assert.deepEqual(
    reported.filter((one) => one.includes("waited")),
    ["GET waited 0", "GET waited 1000"],
  );
});
