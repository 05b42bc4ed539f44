import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { decode, encode, type Packet } from "dns-packet";
import { newDnsMetrics } from "./metrics.ts";
import { startDnsServer } from "./server.ts";
import { withLength } from "./stream-frames.ts";
import { aService, aSlice, aView, bindBoth, queryTcp, startTestDns, startUpstream, upstreamReply } from "./testing.ts";

const web = "www.example.com";
const address = (data: string, ttl = 60) => ({ name: web, type: "A" as const, ttl, data });
const soa = {
  name: "example.com",
  type: "SOA" as const,
  ttl: 900,
  data: { mname: "a", rname: "b", serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 20 },
};
const dataOf = ({ answers = [] }: Packet): unknown[] => answers.map((answer) => (answer as { data: unknown }).data);
const queryOf = (name: string, extra: object = {}): Buffer =>
  encode({ id: 7, type: "query", flags: 0x100, questions: [{ name, type: "A" }], ...extra });
const big = { type: "OPT" as const, name: ".", udpPayloadSize: 4096 } as never;

test("answers over UDP and TCP, in the client's spelling, with AA and RA", async (t) => {
  const dns = await startTestDns(t);
  const name = "Kubernetes.Default.SVC.cluster.local";
  const answer = await dns.ask(name);
  assert.partialDeepStrictEqual(answer, { id: 7, rcode: "NOERROR", flag_aa: true, flag_ra: true, flag_rd: true, flag_tc: false });
  assert.deepEqual(
    answer.answers?.map((one) => [one.name, (one as { ttl?: number }).ttl, (one as { data: unknown }).data]),
    [[name, 5, "10.96.0.1"]],
  );
  const framed = await queryTcp(
    dns.port,
    Buffer.concat([withLength(queryOf(name)), withLength(queryOf("a.cluster.local"))]),
    140,
  );
  const first = decode(framed.subarray(2));
  assert.equal(dataOf(first)[0], "10.96.0.1");
  const second = decode(framed.subarray(4 + framed.readUInt16BE(0)));
  assert.equal((second as { rcode?: string }).rcode, "NXDOMAIN");
});

test("gives negative answers the zone's SOA record with a short TTL", async (t) => {
  const dns = await startTestDns(t);
  for (const [name, rcode] of [
    ["absent.default.svc.cluster.local", "NXDOMAIN"],
    ["default.svc.cluster.local", "NOERROR"],
  ] as const) {
    const answer = await dns.ask(name);
    assert.partialDeepStrictEqual(answer, { rcode });
    assert.deepEqual(answer.answers, []);
    const [authority] = answer.authorities ?? [];
    assert.partialDeepStrictEqual(authority, { type: "SOA", name: "cluster.local", ttl: 5, data: { minimum: 5 } });
  }
});

test("fails the cluster's names until Services are known", async (t) => {
  const view = aView();
  view.isSynced = false;
  const dns = await startTestDns(t, { view });
  assert.partialDeepStrictEqual(await dns.ask("kubernetes.default.svc.cluster.local"), { rcode: "SERVFAIL" });
  view.isSynced = true;
  assert.partialDeepStrictEqual(await dns.ask("kubernetes.default.svc.cluster.local"), { rcode: "NOERROR" });
});

test("cuts what is too long for UDP, keeps what fits, and gives all over TCP", async (t) => {
  const view = aView();
  view.services.push(aService("many", { clusterIP: "None" }));
  view.slices.push(
    aSlice(
      "many",
      Array.from({ length: 200 }, (_, i) => ({ addresses: [`10.244.1.${i}`] })),
    ),
  );
  const dns = await startTestDns(t, { view });
  const name = "many.default.svc.cluster.local";
  const plain = await dns.ask(name);
  assert.equal(plain.flag_tc, true);
  assert.equal(plain.answers?.length, Math.floor((512 - 12 - 36) / 16));
  const extended = await dns.send(queryOf(name, { additionals: [big] }));
  assert.ok(extended.length <= 1232 && extended.length > 1200, String(extended.length));
  hasFields(decode(extended), { flag_tc: true, additionals: [{ type: "OPT", udpPayloadSize: 1232 }] });
  const whole = decode((await queryTcp(dns.port, withLength(queryOf(name)), 2 + 12 + 36 + 200 * 16)).subarray(2));
  assert.equal(whole.flag_tc, false);
  assert.equal(new Set(dataOf(whole)).size, 200);
});

test("spreads clients that take the first answer", async (t) => {
  const dns = await startTestDns(t);
  const firsts = new Set<unknown>();
  await waitFor(async () => {
    firsts.add(dataOf(await dns.ask("db.default.svc.cluster.local"))[0]);
    return firsts.size === 2;
  });
});

test("refuses transfers, other classes and other versions of EDNS; answers ANY with one record", async (t) => {
  const dns = await startTestDns(t);
  assert.partialDeepStrictEqual(await dns.ask("cluster.local", "AXFR"), { rcode: "REFUSED" });
  const chaos = queryOf("version.bind");
  chaos.writeUInt16BE(3, chaos.length - 2);
  assert.partialDeepStrictEqual(decode(await dns.send(chaos)), { rcode: "REFUSED" });
  const opt = { type: "OPT", name: ".", udpPayloadSize: 1232, ednsVersion: 3 } as never;
  const bad = decode(await dns.send(queryOf(web, { additionals: [opt] })));
  assert.partialDeepStrictEqual(bad.additionals?.[0], { type: "OPT", extendedRcode: 1 });
  const shown = await dns.metrics();
  assert.match(shown, /^coredns_dns_responses_total\{rcode="BADVERS"\} 1$/m);
  assert.match(shown, /^coredns_dns_responses_total\{rcode="REFUSED"\} 2$/m);
  assert.match(shown, /^coredns_dns_response_size_bytes_bucket\{proto="udp",le="100"\} 3$/m);
  assert.match(shown, /^coredns_dns_response_size_bytes_bucket\{proto="udp",le="0"\} 0$/m);
  hasFields(await dns.ask(web, "ANY" as never), { answers: [{ type: "HINFO" }] });
});

test("forwards other names once, counts TTLs down and keeps NXDOMAIN as long as its SOA record says", async (t) => {
  const upstream = await startUpstream(t, (request) => {
    const isKnown = request.questions?.[0]?.name.toLowerCase() === web;
    return isKnown ? upstreamReply(request, [address("192.0.2.1", 600)]) : upstreamReply(request, [], 3, [soa]);
  });
  const dns = await startTestDns(t, { upstreams: [upstream.port] });
  const [answer] = await Promise.all([dns.ask("WWW.example.com"), dns.ask(web), dns.ask(web)]);
  hasFields(answer, { rcode: "NOERROR", flag_aa: false, answers: [{ data: "192.0.2.1" }] });
  assert.equal(answer.questions?.[0]?.name, "WWW.example.com");
  assert.equal(upstream.requested.length, 1);
  for (let i = 0; i < 2; i++) {
    const { authorities, ...negative } = await dns.ask("absent.example.com");
    assert.partialDeepStrictEqual(negative, { rcode: "NXDOMAIN" });
    assert.deepEqual(negative.answers, []);
    assert.equal(authorities?.[0]?.type, "SOA");
  }
  assert.deepEqual(upstream.requested.length, 2);
  const counts = async (): Promise<number[]> => {
    const text = await dns.metrics();
    return ["hits", "misses"].map((name) => Number(new RegExp(`^coredns_cache_${name}_total (\\d+)$`, "m").exec(text)?.[1]));
  };
  const [hits = 0, misses = 0] = await counts();
  assert.ok(hits >= 1);
  await dns.ask("absent.example.com");
  assert.deepEqual(await counts(), [hits + 1, misses]);
  await dns.ask("absent-too.example.com");
  assert.deepEqual(await counts(), [hits + 1, misses + 1]);
});

test("follows the alias of an ExternalName Service to the other server", async (t) => {
  const upstream = await startUpstream(t, (request) => upstreamReply(request, [address("192.0.2.7")]));
  const dns = await startTestDns(t, { upstreams: [upstream.port] });
  const { answers } = await dns.ask("outside.default.svc.cluster.local");
  assert.deepEqual(
    answers?.map((one) => [one.type, one.name, (one as { data: unknown }).data]),
    [
      ["CNAME", "outside.default.svc.cluster.local", web],
      ["A", web, "192.0.2.7"],
    ],
  );
});

test("asks the next server when one does not answer or fails, and over TCP when an answer was cut", async (t) => {
  const failing = await startUpstream(t, (request) => upstreamReply(request, [], 2));
  const cut = await startUpstream(t, (request, transport) =>
    transport === "udp" ? upstreamReply(request, [], 0x200) : upstreamReply(request, [address("192.0.2.3")]),
  );
  const closed = await startUpstream({ after: (fn) => void fn() }, () => undefined);
  const dns = await startTestDns(t, { upstreams: [closed.port, failing.port, cut.port] });
  hasFields(await dns.ask(web), { rcode: "NOERROR", answers: [{ data: "192.0.2.3" }] });
  const alone = await startTestDns(t, { upstreams: [failing.port] });
  assert.partialDeepStrictEqual(await alone.ask(web), { rcode: "SERVFAIL" });
  const none = await startTestDns(t);
  assert.partialDeepStrictEqual(await none.ask(web), { rcode: "SERVFAIL" });
  assert.partialDeepStrictEqual(await none.ask("kubernetes.default.svc.cluster.local"), { rcode: "NOERROR" });
});

test("ignores an answer with another ID or to another question", async (t) => {
  const upstream = await startUpstream(t, (request) => {
    if (upstream.requested.length === 1)
      return upstreamReply({ ...request, id: (request.id ?? 0) ^ 1 }, [address("203.0.113.1")]);
    return upstreamReply(request, [address("192.0.2.1")]);
  });
  const dns = await startTestDns(t, { upstreams: [upstream.port] });
  hasFields(await dns.ask(web), { answers: [{ data: "192.0.2.1" }] });
});

test("forwards nothing while its own questions come back", async (t) => {
  const { promise: upstreams, resolve } = Promise.withResolvers<readonly number[]>();
  const dns = await startTestDns(t, { upstreams });
  const behind = await startTestDns(t, { upstreams: [dns.port] });
  resolve([behind.port]);
  await waitFor(() => dns.server.isLoop);
  assert.partialDeepStrictEqual(await dns.ask(web), { rcode: "SERVFAIL" });
  assert.partialDeepStrictEqual(await dns.ask("kubernetes.default.svc.cluster.local"), { rcode: "NOERROR" });
  assert.match(await dns.metrics(), /coxswain_dns_forward_loop 1\n/);
});

test("survives malformed messages, a connection that promises much, and one that sends nothing", async (t) => {
  const dns = await startTestDns(t);
  const idle = connect({ host: "127.0.0.1", port: dns.port });
  t.after(() => idle.destroy());
  assert.equal((await queryTcp(dns.port, Buffer.from([0xff, 0xff, 0, 1]), 1)).length, 0);
  const garbage = await queryTcp(dns.port, withLength(Buffer.alloc(20, 0xff)), 1);
  assert.equal(garbage.length, 0);
  const malformed = queryOf("a.b");
  malformed.writeUInt16BE(0xc00c, 12);
  assert.partialDeepStrictEqual(decode(await dns.send(malformed)), { id: 7, rcode: "FORMERR" });
  assert.partialDeepStrictEqual(await dns.ask("kubernetes.default.svc.cluster.local"), { rcode: "NOERROR" });
});

test("an address that cannot be bound is an error that leaves nothing bound", async () => {
  const [tcp, udp] = await bindBoth("127.0.0.1");
  const { port } = udp.address();
  await Promise.all([new Promise((resolve) => tcp.close(resolve)), new Promise<void>((resolve) => udp.close(() => resolve()))]);
  const start = (addresses: readonly string[]) =>
    startDnsServer({
      ...{ addresses, port, clock: realClock, log: discardLogger, metrics: newDnsMetrics(newMetricsRegistry()), view: aView() },
      zone: { domain: "cluster.local", dnsAddresses: [], podRecords: true, serial: 1 },
      upstreams: async () => [],
      signal: AbortSignal.abort(),
    });
  await assert.rejects(start(["127.0.0.1", "192.0.2.1"]), { message: `cannot listen on 127.0.0.1, 192.0.2.1, port ${port}` });
  await (await start(["127.0.0.1"])).close();
});

/** Addresses that change from one attempt to the next. */
function addressesOf(attempts: readonly (readonly string[])[]) {
  const seen = { tries: 0 };
  const addresses: string[] = ["127.0.0.1"];
  addresses[Symbol.iterator] = () => (attempts[seen.tries++] ?? attempts.at(-1) ?? []).values();
  return { seen, addresses };
}

test("a free port is looked for ten times; an address that the machine does not have is an error at once", async () => {
  const start = (addresses: readonly string[], port = 0) =>
    startDnsServer({
      ...{ addresses, port, view: aView(), upstreams: async () => [], log: discardLogger, clock: realClock },
      zone: { domain: "cluster.local", dnsAddresses: ["10.96.0.10"], podRecords: true, serial: 1 },
      metrics: newDnsMetrics(newMetricsRegistry()),
      signal: AbortSignal.abort(),
    });
  const taken = ["127.0.0.1", "127.0.0.1"];
  const third = addressesOf([taken, taken, ["127.0.0.1"]]);
  const server = await start(third.addresses);
  await server.close();
  assert.equal(third.seen.tries, 3);
  const never = addressesOf([taken]);
  await assert.rejects(start(never.addresses), /^Error: cannot listen on 127\.0\.0\.1, port \d+$/);
  assert.equal(never.seen.tries, 10);
  const absent = addressesOf([["192.0.2.1"]]);
  await assert.rejects(start(absent.addresses), ({ cause }: Error) => (cause as { code: string }).code === "EADDRNOTAVAIL");
  assert.equal(absent.seen.tries, 1);
  const given = addressesOf([taken]);
  await assert.rejects(start(given.addresses, server.port), { message: `cannot listen on 127.0.0.1, port ${server.port}` });
  assert.equal(given.seen.tries, 1, "a port that was given");
});
