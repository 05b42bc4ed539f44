/** What is remembered of other servers, for how long, and when it is queried again. */
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { type Answer, decode, encode } from "dns-packet";
import type { Forwarder } from "./forwarder.ts";
import { newLoopDetector } from "./loop-detector.ts";
import { walkResponse } from "./message-walk.ts";
import { newDnsMetrics } from "./metrics.ts";
import { parseQuery, type Query } from "./query.ts";
import { encodeRelayed, newRelayCache, type Relayed } from "./relay-cache.ts";
import { watchedUpstreams } from "./resolv-conf.ts";

const questions = [{ name: "a.example", type: "A" as const }];
const anAddress = (ttl: number, data = "192.0.2.1"): Answer => ({ name: "a.example", type: "A", ttl, data });
const anAlias = (ttl: number): Answer => ({ name: "a.example", type: "CNAME", ttl, data: "b.example" });
const soa = (minimum: number): Answer => ({
  ...{ name: "example", type: "SOA", ttl: 900 },
  data: { mname: "a", rname: "b", serial: 1, refresh: 1, retry: 1, expire: 1, minimum },
});
function relayed(answers: Answer[], rcode = 0, authorities: Answer[] = []): Relayed {
  const message = encode({ id: 1, type: "response", flags: rcode, questions, answers, authorities });
  return { message, records: walkResponse(message)?.records ?? [], rcode };
}

test("an answer is kept as long as its shortest record says and 30 s at most, a failure 5 s, and what has no time not at all", async () => {
  for (const { name, answer, seconds } of [
    { name: "the shortest", answer: relayed([anAddress(20), anAddress(7)]), seconds: 7 },
    { name: "long", answer: relayed([anAddress(600)]), seconds: 30 },
    { name: "negative", answer: relayed([], 3, [soa(12)]), seconds: 12 },
    { name: "without the type", answer: relayed([], 0, [soa(12)]), seconds: 12 },
    { name: "negative behind an alias", answer: relayed([anAlias(20)], 3, [soa(12)]), seconds: 12 },
    { name: "negative behind an alias with a shorter TTL", answer: relayed([anAlias(5)], 3, [soa(12)]), seconds: 5 },
    { name: "negative without a time", answer: relayed([], 3), seconds: 0 },
    { name: "failed", answer: relayed([], 2), seconds: 5 },
    { name: "refused, with records", answer: relayed([anAddress(600)], 5), seconds: 5 },
    {
      name: "negative, of an SOA record with a shorter TTL",
      answer: relayed([], 3, [{ ...soa(12), ttl: 4 } as Answer]),
      seconds: 4,
    },
    { name: "TTL 0", answer: relayed([anAddress(0)]), seconds: 0 },
  ]) {
    const clock = newFakeClock();
    const cache = newRelayCache(clock);
    cache.put("a", answer);
    answer.message.fill(0, 12); // of a buffer that is used again
    assert.equal(cache.size, Number(seconds > 0), name);
    await clock.advance(Math.max(0, seconds * 1000 - 1));
    const known = cache.get("a");
    assert.deepEqual(
      [known?.ageSeconds, known?.message.readUInt8(12)],
      seconds > 0 ? [seconds - 1, 1] : [undefined, undefined],
      name,
    );
    await clock.advance(1);
    assert.deepEqual([cache.get("a"), cache.size], [undefined, 0], name);
  }
});

test("a relayed answer has the query's ID and question, what is left of its TTLs, and is cut to the limit by whole records", () => {
  const query = parseQuery(
    encode({ id: 9, type: "query", flags: 0x100, questions: [{ name: "A.Example", type: "A" }] }),
  ) as Query;
  const answer = relayed([anAddress(10), anAddress(3, "192.0.2.2")], 0, [soa(1)]);
  const shown = decode(encodeRelayed(query, { ...answer, ageSeconds: 4 }, 512));
  assert.deepEqual([shown.id, shown.questions?.[0]?.name, shown.flag_tc], [9, "A.Example", false]);
  assert.deepEqual([shown.answers?.map((one) => (one as { ttl?: number }).ttl), shown.authorities?.length], [[6, 0], 1]);
  const [first, second] = answer.records;
  for (const { limit, answers, truncated } of [
    { limit: second?.end ?? 0, answers: 2, truncated: false },
    { limit: (second?.end ?? 0) - 1, answers: 1, truncated: true },
    { limit: first?.end ?? 0, answers: 1, truncated: true },
    { limit: (first?.end ?? 0) - 1, answers: 0, truncated: true },
  ]) {
    const cut = decode(encodeRelayed(query, answer, limit));
    assert.deepEqual([cut.answers?.length, cut.authorities?.length, cut.flag_tc], [answers, 0, truncated]);
  }
});

test("the resolver's file is checked every 5 s; without it no servers are used until it is back", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-resolv-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "resolv.conf");
  const clock = newFakeClock();
  const upstreams = watchedUpstreams(file, clock);
  const addresses = async (): Promise<string> => (await upstreams()).map(({ address }) => address).join();
  assert.equal(await addresses(), "");
  writeFileSync(file, "search a\nnameserver 192.0.2.1\nnameserver 192.0.2.1\nnameserver fd00::1\nnameserver x\n");
  await clock.advance(4_999);
  assert.equal(await addresses(), "");
  await clock.advance(1);
  assert.equal(await addresses(), "192.0.2.1,fd00::1");
  const again = "nameserver 192.0.2.22\n";
  writeFileSync(file, again);
  await clock.advance(4_999);
  assert.equal(await addresses(), "192.0.2.1,fd00::1");
  await clock.advance(1);
  assert.equal(await addresses(), "192.0.2.22");
  renameSync(file, `${file}.away`);
  await clock.advance(5_000);
  assert.equal(await addresses(), "");
  renameSync(`${file}.away`, file);
  await clock.advance(5_000);
  assert.equal(await addresses(), "192.0.2.22", "the same file is there again");
  rmSync(file);
  await clock.advance(5_000);
  assert.equal(await addresses(), "");
  writeFileSync(file, again);
  await clock.advance(5_000);
  assert.equal(await addresses(), "192.0.2.22");
});

test("checks for a forwarding loop every minute, during a loop every 10 s, with a new name each time; a failed query is not a loop", async () => {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const logged: string[] = [];
  const log = {
    ...discardLogger,
    error: (text: string) => void logged.push(`E ${text.slice(0, 19)}`),
    info: (text: string) => void logged.push(`I ${text}`),
  };
  const detector = newLoopDetector({ clock, log, metrics: newDnsMetrics(registry) });
  assert.equal(detector.saw(""), false, "before the first question");
  const requests: string[] = [];
  let comesBack = false;
  const forwarder = {
    open: 0,
    openClients: 0,
    async forward({ name }: Query) {
      requests.push(name);
      if (comesBack) assert.equal(detector.saw(name), true);
      if (requests.length > 1) assert.equal(detector.saw(requests.at(-2) as string), false, "of an earlier round");
      throw new Error("no answer");
    },
  } as Forwarder;
  const ending = new AbortController();
  const running = detector.run(forwarder, ending.signal);
  await settle();
  assert.deepEqual([requests.length, detector.isLoop], [1, false]);
  comesBack = true;
  await clock.advance(59_999);
  assert.equal(requests.length, 1);
  await clock.advance(1);
  assert.deepEqual([requests.length, detector.isLoop], [2, true]);
  assert.match(await registry.render(), /coxswain_dns_forward_loop 1\n/);
  await clock.advance(10_000);
  assert.deepEqual([requests.length, detector.isLoop, logged], [3, true, ["E DNS forwarding loop"]], "it is told once");
  comesBack = false;
  await clock.advance(10_000);
  assert.deepEqual([requests.length, detector.isLoop, new Set(requests).size], [4, false, 4]);
  assert.match(await registry.render(), /coxswain_dns_forward_loop 0\n/);
  assert.deepEqual(logged.splice(0), ["E DNS forwarding loop", "I forwarded DNS queries no longer come back"]);
  await clock.advance(60_000);
  assert.deepEqual([requests.length, logged], [5, []]);
  ending.abort();
  await running;
  assert.equal(clock.waiting, 0);
});

test("a TTL beyond 31 bits is the largest one", () => {
  const message = encode({ id: 1, type: "response", questions, answers: [anAddress(1)] });
  const at = walkResponse(message)?.records[0]?.ttlAt ?? 0;
  message.writeUInt32BE(0xffff_ffff, at);
  assert.equal(walkResponse(message)?.records[0]?.ttl, 0x7fff_ffff);
});
