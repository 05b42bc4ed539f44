import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type DecodedPacket, decode, encode } from "dns-packet";
import { ForwardError, type ForwarderOptions, newForwarder, type Relayed } from "./forwarder.ts";
import { newDnsMetrics } from "./metrics.ts";
import { parseQuery, type Query } from "./query.ts";
import type { Upstream } from "./resolv-conf.ts";
import { startUpstream, upstreamReply } from "./testing.ts";

const [servFail, refused] = [2, 5];
const queryOf = (name: string, extra: object = {}): Query =>
  parseQuery(encode({ id: 7, type: "query", flags: 0x100, questions: [{ name, type: "A" }], ...extra })) as Query;
const withDnssec = { additionals: [{ type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0x8000 } as never] };
const answerOf = (request: DecodedPacket, data = "192.0.2.1"): Buffer =>
  upstreamReply(request, [{ name: request.questions?.[0]?.name ?? "", type: "A", ttl: 60, data }]);
const failure = (rcode: number) => (err: unknown) => err instanceof ForwardError && err.rcode === rcode;

function aForwarder(upstreams: ForwarderOptions["upstreams"], limits: Pick<ForwarderOptions, "attemptMs" | "totalMs"> = {}) {
  const clock = newFakeClock();
  const ending = new AbortController();
  const registry = newMetricsRegistry();
  const metrics = newDnsMetrics(registry);
  const forwarder = newForwarder({ upstreams, clock, metrics, signal: ending.signal, ...limits });
  return { clock, ending, forwarder, shown: () => registry.render() };
}

/** Servers that answer by a function, in order; undefined: not at all. */
async function servers(t: TestContext, ...answers: ((request: DecodedPacket) => Buffer | undefined)[]) {
  const hostOf = (i: number): string => `127.0.0.${i + 1}`;
  const running = await Promise.all(answers.map((answer, i) => startUpstream(t, answer, hostOf(i))));
  const upstreams = running.map(({ port }, i): Upstream => ({ address: hostOf(i), port }));
  return { requested: () => running.map((one) => one.requested.length), upstreams: async () => upstreams };
}

test("no client may have more than 100 queries under way, and all together 1,000; what ends gives its place back", async () => {
  const { promise, resolve } = Promise.withResolvers<Upstream[]>();
  const { forwarder, shown } = aForwarder(() => promise);
  const ended: Promise<unknown>[] = [];
  const ask = (name: string, client?: string): void => void ended.push(Promise.resolve(forwarder.forward(queryOf(name), client)));
  for (let i = 0; i < 100; i++) ask(`a${i}.example`, "192.0.2.1");
  await assert.rejects(async () => forwarder.forward(queryOf("a0.example"), "192.0.2.1"), failure(refused));
  for (let i = 0; i < 900; i++) ask(`b${i}.example`);
  assert.equal(forwarder.open, 1000);
  await assert.rejects(async () => forwarder.forward(queryOf("c.example"), "192.0.2.2"), failure(refused));
  assert.match(await shown(), /^coredns_forward_max_concurrent_rejects_total 1$/m);
  ask("b0.example", "192.0.2.2"); // is in flight already
  assert.equal(forwarder.open, 1000);
  assert.equal(forwarder.openClients, 2);
  resolve([]);
  for (const end of await Promise.allSettled(ended)) assert.equal(end.status, "rejected");
  assert.deepEqual([forwarder.open, forwarder.openClients], [0, 0]);
  for (let i = 0; i < 100; i++)
    await assert.rejects(async () => forwarder.forward(queryOf(`a${i}.example`), "192.0.2.1"), failure(servFail));
});

test("an answer is for queries that ask the same: not with other flags, and not for the additional section", async (t) => {
  const asked: unknown[] = [];
  const { requested, upstreams } = await servers(t, (request) => {
    const { id = 0, questions = [], additionals: [opt] = [] } = request;
    const { flag_do, udpPayloadSize } = opt as { flag_do?: boolean; udpPayloadSize?: number }; // cast: every query has EDNS
    asked.push([request.flag_rd, request.flag_cd, flag_do, udpPayloadSize]);
    const answers = [{ name: questions[0]?.name ?? "", type: "A" as const, ttl: 60, data: "192.0.2.1" }];
    return encode({ id, type: "response", questions, answers, ...withDnssec });
  });
  const { forwarder } = aForwarder(upstreams);
  const checking = queryOf("a.example", { flags: 0x110 });
  assert.equal(checking.checkingDisabled, true);
  for (const [i, query] of [queryOf("a.example"), queryOf("a.example", withDnssec), checking].entries()) {
    const first = await forwarder.forward(query);
    const { answers, additionals } = decode(first.message);
    assert.deepEqual([answers?.length, additionals?.length], [1, 0]);
    assert.ok(!(forwarder.forward(query) instanceof Promise), "from the cache");
    assert.deepEqual(requested(), [i + 1]);
  }
  assert.deepEqual(
    asked,
    [
      [true, false, false, 1_232],
      [true, false, true, 1_232],
      [true, true, false, 1_232],
    ],
    "recursion desired, checking disabled, DNSSEC, size",
  );
});

test("a query with EDNS that does not ask for DNSSEC gets no answer that was made for one that did", async (t) => {
  const { requested, upstreams } = await servers(t, ({ id = 0, questions = [] }) =>
    encode({
      id,
      type: "response",
      questions,
      answers: [{ name: questions[0]?.name ?? "", type: "A", ttl: 60, data: "192.0.2.1" }],
    }),
  );
  const { forwarder } = aForwarder(upstreams);
  const withEdns = { additionals: [{ type: "OPT" as const, name: ".", udpPayloadSize: 1_232, flags: 0, options: [] }] };
  const plain = queryOf("a.example", withEdns as never);
  assert.equal(plain.edns?.dnssecOk, false);
  await forwarder.forward(queryOf("a.example", withDnssec));
  await forwarder.forward(plain);
  assert.deepEqual(requested(), [2]);
  assert.ok(!(forwarder.forward(queryOf("a.example")) instanceof Promise), "without EDNS it is the same question");
});

test("a server that did not answer is queried after the others for 10 s, or until it has answered", async (t) => {
  let isSilent = true;
  let rcode = 0;
  const { requested, upstreams } = await servers(
    t,
    (request) => (isSilent ? undefined : answerOf(request)),
    (request) => (rcode === 0 ? answerOf(request) : upstreamReply(request, [], rcode)),
  );
  const { clock, forwarder, shown } = aForwarder(upstreams);
  const late = Promise.resolve(forwarder.forward(queryOf("a.example")));
  await waitFor(() => requested()[0] === 1);
  await clock.advance(1_500);
  await late;
  assert.deepEqual(requested(), [1, 1]);
  await forwarder.forward(queryOf("b.example"));
  assert.deepEqual(requested(), [1, 2], "the second at once");
  [isSilent, rcode] = [false, servFail];
  assert.equal((await forwarder.forward(queryOf("c.example"))).rcode, 0);
  assert.deepEqual(requested(), [2, 3], "the first when the second fails");
  await forwarder.forward(queryOf("d.example"));
  assert.deepEqual(requested(), [3, 3], "it has answered, and is preferred again");
  isSilent = true;
  rcode = 0;
  const again = Promise.resolve(forwarder.forward(queryOf("e.example")));
  await waitFor(() => requested()[0] === 4);
  await clock.advance(1_500);
  await again;
  isSilent = false;
  await clock.advance(9_999);
  await forwarder.forward(queryOf("f.example"));
  assert.deepEqual(requested(), [4, 5], "before 10 s");
  await clock.advance(1);
  await forwarder.forward(queryOf("g.example"));
  assert.deepEqual(requested(), [5, 5], "after 10 s");
  assert.match(await shown(), /^coredns_forward_healthcheck_failures_total\{to="127.0.0.1"\} 2$/m);
});

test("a failing server is queried once, and its response is used when no other has one", async (t) => {
  for (const rcode of [servFail, refused]) {
    const { requested, upstreams } = await servers(
      t,
      (request) => upstreamReply(request, [], rcode),
      (request) => upstreamReply(request, [], rcode),
    );
    const { forwarder } = aForwarder(upstreams);
    assert.equal((await forwarder.forward(queryOf("a.example"))).rcode, rcode);
    assert.deepEqual(requested(), [1, 1]);
  }
});

test("attempts end with the time of the query; a single server that lost the question is queried again", async (t) => {
  const { requested, upstreams } = await servers(t, () => undefined);
  const { clock, forwarder } = aForwarder(upstreams, { attemptMs: 1_500, totalMs: 2_000 });
  let ended: unknown;
  Promise.resolve(forwarder.forward(queryOf("a.example"))).catch((err: unknown) => {
    ended = err;
  });
  await waitFor(() => requested()[0] === 1);
  await clock.advance(1_500);
  await waitFor(() => requested()[0] === 2);
  await clock.advance(499);
  assert.equal(ended, undefined);
  await clock.advance(1);
  await settle();
  assert.ok(failure(servFail)(ended), String(ended));
  assert.equal(forwarder.open, 0);
});

test("an answer to another question is ignored, and the end of the server cancels what waits", async (t) => {
  const { requested, upstreams } = await servers(t, ({ id = 0 }) =>
    answerOf({ id, questions: [{ name: "b.example", type: "A", class: "IN" }] } as DecodedPacket, "203.0.113.1"),
  );
  const { clock, ending, forwarder } = aForwarder(upstreams);
  const waiting: Promise<Relayed> = Promise.resolve(forwarder.forward(queryOf("a.example")));
  await waitFor(() => requested()[0] === 1);
  await waitFor(() => clock.waiting === 1);
  ending.abort(new Error("the part ends"));
  await assert.rejects(waiting, failure(servFail));
  assert.deepEqual([clock.waiting, requested()], [0, [1]]);
});

test("a message with another ID, with another question, or that is a query is ignored", async (t) => {
  const socket = createSocket("udp4");
  t.after(() => void socket.close());
  socket.on("message", (message, { port, address }) => {
    const request = decode(message);
    const { id = 0, questions = [] } = request;
    const other = [{ name: "b.example", type: "A", class: "IN" }] as DecodedPacket["questions"];
    const untrue = "203.0.113.1";
    const bytes = [
      answerOf({ ...request, id: id ^ 1 }, untrue),
      answerOf({ ...request, questions: other }, untrue),
      encode({ id, type: "query", questions, answers: [{ name: "a.example", type: "A", ttl: 60, data: untrue }] }),
      answerOf(request),
    ];
    for (const one of bytes) socket.send(one, port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { forwarder } = aForwarder(async () => [{ address: "127.0.0.1", port: socket.address().port }]);
  const { message } = await forwarder.forward(queryOf("a.example"));
  hasFields(decode(message).answers, [{ name: "a.example", data: "192.0.2.1" }]);
});

test("a query that ends gives its client one place back, not all of them", async () => {
  const waiting: PromiseWithResolvers<Upstream[]>[] = [];
  const { forwarder } = aForwarder(() => {
    const one = Promise.withResolvers<Upstream[]>();
    waiting.push(one);
    return one.promise;
  });
  const ask = (i: number): Promise<unknown> =>
    Promise.resolve(forwarder.forward(queryOf(`a${i}.example`), "192.0.2.1")).catch((err: ForwardError) => err.rcode);
  const asked = Array.from({ length: 100 }, (_, i) => ask(i));
  waiting[0]?.resolve([]);
  assert.equal(await asked[0], servFail);
  asked.push(ask(100));
  assert.equal(await ask(101), refused, "the hundredth place is taken again");
  for (const one of waiting) one.resolve([]);
  assert.deepEqual(new Set(await Promise.all(asked)), new Set([servFail]));
});
