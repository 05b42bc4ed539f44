/** Which server answers: the zone, another one, or none; and answers that both give together. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type Answer, type DecodedPacket, decode, encode, type RecordType } from "dns-packet";
import { ForwardError, type Forwarder } from "./forwarder.ts";
import { walkResponse } from "./message-walk.ts";
import { parseQuery, type Query } from "./query.ts";
import type { Relayed } from "./relay-cache.ts";
import { newResponder } from "./responder.ts";
import { aService, aSlice, aView } from "./testing.ts";
import { newZone } from "./zone.ts";

const web = "www.example.com";
const options = { domain: "cluster.local", dnsAddresses: ["10.96.0.10"], podRecords: true, serial: 1 };

function responding({
  isReady = true,
  isLoop = false,
  rcode = 0,
  ageSeconds = 0,
  answers = [] as Answer[],
  failure = undefined as Error | undefined,
} = {}) {
  const forwarded: string[] = [];
  const view = aView();
  const forwarder: Forwarder = {
    ...{ open: 0, openClients: 0 },
    async forward({ name, type, question }): Promise<Relayed> {
      forwarded.push(`${type} ${name}`);
      if (failure !== undefined) throw failure;
      const questions = decode(Buffer.concat([Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), question])).questions ?? [];
      const message = encode({ id: 1, type: "response", flags: rcode, questions, answers });
      return { message, records: walkResponse(message)?.records ?? [], rcode, ageSeconds };
    },
  };
  const respond = newResponder({
    ...{ zone: newZone(view, options), isReady: () => isReady, forwarder, log: discardLogger },
    loop: { isLoop, saw: (name) => name === "seen.example", run: async () => {} },
  });
  const ask = async (name: string, type: RecordType | "IXFR" = "A"): Promise<DecodedPacket & { rcode: string }> => {
    const query = parseQuery(
      encode({ id: 7, type: "query", flags: 0x100, questions: [{ name, type: type as RecordType }] }),
    ) as Query;
    return decode((await respond(query, "127.0.0.1", 65_535)).message) as DecodedPacket & { rcode: string };
  };
  return { forwarded, view, ask };
}
const dataOf = ({ answers = [] }: DecodedPacket): unknown[] => answers.map((one) => (one as { data: unknown }).data);
const outside = "outside.default.svc.cluster.local";

test("transfers of both kinds are refused, and not forwarded", async () => {
  const { forwarded, ask } = responding();
  for (const type of ["AXFR", "IXFR"] as const) assert.equal((await ask(web, type)).rcode, "REFUSED");
  assert.deepEqual(forwarded, []);
});

test("while queries come back nothing is forwarded: no name of others, no alias, and no query of the detector", async () => {
  const { forwarded, ask } = responding({ isLoop: true });
  assert.deepEqual([(await ask(web)).rcode, (await ask(outside)).rcode], ["SERVFAIL", "SERVFAIL"]);
  assert.equal((await ask("kubernetes.default.svc.cluster.local")).rcode, "NOERROR");
  const { forwarded: none, ask: askDetector } = responding();
  assert.equal((await askDetector("seen.example")).rcode, "SERVFAIL");
  assert.deepEqual([forwarded, none], [[], []]);
});

test("before Services are known reverse names are asked of others, and the cluster's own fail", async () => {
  const { forwarded, ask } = responding({ isReady: false });
  assert.equal((await ask("1.0.96.10.in-addr.arpa", "PTR")).rcode, "NOERROR");
  assert.equal((await ask("kubernetes.default.svc.cluster.local")).rcode, "SERVFAIL");
  assert.deepEqual(forwarded, ["12 1.0.96.10.in-addr.arpa"]);
});

test("an alias is followed for addresses of both families, with what is left of the TTLs; not for other types", async () => {
  for (const [type, data] of [
    ["A", "192.0.2.7"],
    ["AAAA", "2001:db8::7"],
  ] as const) {
    const { forwarded, ask } = responding({ ageSeconds: 20, answers: [{ name: web, type, ttl: 30, data }] });
    const answer = await ask(outside, type);
    assert.deepEqual(dataOf(answer), [web, data]);
    assert.deepEqual(
      (answer.answers as { ttl: number }[]).map(({ ttl }) => ttl),
      [5, 10],
    );
    assert.equal(forwarded.length, 1);
  }
  const { forwarded, ask } = responding();
  assert.deepEqual(dataOf(await ask(outside, "TXT")), [web]);
  assert.deepEqual(forwarded, []);
});

test("an alias to a name that does not exist says so, with the alias", async () => {
  const { ask } = responding({ rcode: 3 });
  const answer = await ask(outside);
  assert.deepEqual([answer.rcode, dataOf(answer)], ["NXDOMAIN", [web]]);
});

test("addresses come with SRV records, and with no others", async () => {
  const { view, ask } = responding();
  view.services.push(aService("web", { clusterIP: "10.96.0.40", ports: [{ name: "http", port: 80 }] }));
  view.slices.push(aSlice("web", [{ addresses: ["10.244.0.40"] }], [{ name: "http", protocol: "TCP", port: 8080 }]));
  const srv = await ask("_http._tcp.web.default.svc.cluster.local", "SRV");
  assert.deepEqual([srv.answers?.length, srv.additionals?.length], [1, 1]);
  assert.partialDeepStrictEqual(dataOf(srv)[0], { priority: 0, weight: 100, port: 80 });
  const asked = await ask("_http._tcp.web.default.svc.cluster.local", "A");
  assert.deepEqual([asked.answers?.length, asked.additionals?.length, asked.authorities?.length], [0, 0, 1]);
});

test("a query that cannot be forwarded fails as the forwarder says, else with SERVFAIL, also behind an alias", async () => {
  for (const [failure, want] of [
    [new ForwardError(5, "no room"), "REFUSED"],
    [new Error("lost"), "SERVFAIL"],
  ] as const) {
    const { ask } = responding({ failure });
    assert.deepEqual([(await ask(web)).rcode, (await ask(outside)).rcode], [want, want]);
  }
});

test("aliases within the zone come in their order, each with its own name, before the addresses", async (t) => {
  t.mock.method(Math, "random", () => 0.99);
  const { view, ask } = responding();
  const ofExternal = (name: string, externalName: string) =>
    view.services.push(aService(name, { type: "ExternalName", externalName }));
  const [one, two, target] = ["one", "two", "target"].map((name) => `${name}.default.svc.cluster.local`) as [
    string,
    string,
    string,
  ];
  ofExternal("one", two);
  ofExternal("two", target);
  view.services.push(aService("target", { clusterIP: "None" }));
  view.slices.push(aSlice("target", [{ addresses: ["10.244.0.40"] }, { addresses: ["10.244.0.41"] }]));
  const { answers = [] } = await ask(one);
  assert.deepEqual(
    answers.map((answer) => [answer.name, answer.type]),
    [
      [one, "CNAME"],
      [two, "CNAME"],
      [target, "A"],
      [target, "A"],
    ],
  );
});

test("the addresses of a name begin with a random one", async (t) => {
  const random = t.mock.method(Math, "random", () => 0);
  const { ask } = responding();
  const ofDb = async (): Promise<unknown[]> => dataOf(await ask("db.default.svc.cluster.local"));
  assert.deepEqual(await ofDb(), ["10.244.0.5", "10.244.0.6"]);
  random.mock.mockImplementation(() => 0.5);
  assert.deepEqual(await ofDb(), ["10.244.0.6", "10.244.0.5"]);
});
