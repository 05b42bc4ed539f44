/**
 * Answers of the DNS server while Services are created and deleted and a thousand endpoints change, through informers whose
 * watches break. They are compared with a model that computes them from all objects, without indexes and caches.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Service, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Endpoint, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, namespaces, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { decode } from "dns-packet";
import { resolveAliases } from "./alias.ts";
import { newClusterView } from "./cluster-view.ts";
import { types } from "./protocol.ts";
import { parseQuery, type Query } from "./query.ts";
import { encodeReply } from "./reply.ts";
import { aService, aSlice } from "./testing.ts";
import { newZone } from "./zone.ts";

const serviceCount = 40;
const addressCount = 60;
const serviceNames = Array.from({ length: serviceCount }, (_, i) => `s${i}`);
const hostNames = ["a", "b", "c"];
const addresses = Array.from({ length: addressCount }, (_, i) => `10.244.0.${i + 1}`);
const domain = "svc.cluster.local";
const fiveMinutesMs = 300_000;
/** An informer that had no fault for so long waits at most 1.6 s after the next one. */
const backoffResetMs = 121_000;

interface State {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
}

/** By question, for all names that may exist: the addresses or names in order, or `NXDOMAIN`. */
type Answers = Record<string, string>;

const reverseOf = (ip: string): string => `${ip.split(".").reverse().join(".")}.in-addr.arpa`;
const text = (found: readonly string[]): string => [...new Set(found)].toSorted().join() || "NXDOMAIN";

function expected(state: State): Answers {
  const answers: Answers = {};
  const reverse = new Map<string, string[]>();
  const addReverse = (ip: string, name: string): void => {
    reverse.set(ip, [...(reverse.get(ip) ?? []), name]);
  };
  const endpointsOf = (service: string): (readonly [hostname: string, ip: string])[] =>
    state.slices
      .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === service)
      .flatMap(({ endpoints }) => endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses: ips, hostname }) => ips.map((ip) => [hostname ?? ip.replaceAll(".", "-"), ip] as const));
  for (const name of serviceNames) {
    const spec = state.services.find(({ metadata }) => metadata.name === name)?.spec;
    const endpoints = endpointsOf(name);
    for (const [hostname, ip] of endpoints) addReverse(ip, `${hostname}.${name}.default.${domain}`);
    const isNamed = spec !== undefined && spec.type !== "ExternalName";
    const isHeadless = isNamed && spec.clusterIP === "None";
    if (isNamed && !isHeadless) addReverse(spec.clusterIP as string, `${name}.default.${domain}`);
    const own = isHeadless ? endpoints.map(([, ip]) => ip) : isNamed ? [spec.clusterIP as string] : [];
    answers[`A ${name}.default.${domain}`] = spec?.type === "ExternalName" ? (spec.externalName as string) : text(own);
    for (const host of hostNames) {
      const ips = isNamed ? endpoints.filter(([hostname]) => hostname === host).map(([, ip]) => ip) : [];
      answers[`A ${host}.${name}.default.${domain}`] = text(ips);
    }
  }
  for (const ip of [...addresses, ...serviceNames.map(clusterIpOf)])
    answers[`PTR ${reverseOf(ip)}`] = text(reverse.get(ip) ?? []);
  return answers;
}

const clusterIpOf = (_: string, i: number): string => `10.96.1.${i + 1}`;

function newCluster(seed: number) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const zone = newZone(newClusterView(informers), { domain: "cluster.local", dnsAddresses: [], podRecords: true, serial: 1 });
  client.put(namespaces, { metadata: { name: "default" } });
  const random = randomOf(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const picked = <T>(all: readonly T[]): T => all[below(all.length)] as T;

  const answered = (question: string): string => {
    const [type, name] = question.split(" ") as ["A" | "PTR", string];
    const relative = zone.relative(name);
    const found = relative === undefined ? zone.findReverse(name) : zone.find(relative, types[type]);
    const { rcode, answers } = resolveAliases(zone, found, types[type]);
    if (rcode !== 0) return rcode === 3 ? "NXDOMAIN" : `rcode ${rcode}`;
    const query: Query = { ...(parseQuery(Buffer.alloc(12)) as { query: Query }).query, question: Buffer.from([0, 0, 1, 0, 1]) };
    const reply = decode(encodeReply(query, { rcode, authoritative: true, answers }, 65_535));
    return text((reply.answers ?? []).map((answer) => String((answer as { data: unknown }).data)));
  };
  const changeService = (): void => {
    const i = below(serviceCount);
    const name = serviceNames[i] as string;
    if (below(3) === 0) {
      client.remove(services, `default/${name}`);
      return;
    }
    const specs: ServiceSpec[] = [
      { clusterIP: clusterIpOf(name, i), ports: [{ port: 80 }] },
      { clusterIP: "None", ports: [{ port: 80 }] },
      { type: "ExternalName", externalName: `${picked(hostNames)}.example` },
    ];
    client.put(services, aService(name, picked(specs)));
  };
  const changeSlice = (): void => {
    const service = picked(serviceNames);
    const name = `${service}-${below(2) + 1}`;
    if (below(4) === 0) {
      client.remove(endpointSlices, `default/${name}`);
      return;
    }
    const endpoints = Array.from({ length: below(5) }, (): Endpoint => {
      const hostname = below(2) === 0 ? { hostname: picked(hostNames) } : {};
      return { addresses: [picked(addresses)], conditions: { ready: below(4) > 0 }, ...hostname };
    });
    // An address is once in a slice, as the controller writes them.
    const unique = [...new Map(endpoints.map((endpoint) => [endpoint.addresses[0], endpoint])).values()];
    const slice = aSlice(service, unique);
    client.put(endpointSlices, { ...slice, metadata: { ...slice.metadata, name } });
  };
  return {
    client,
    clock,
    informers,
    change(times: number) {
      for (let i = 0; i < times; i++) picked([changeService, changeSlice])();
    },
    state: (): State => ({ services: client.objects<Service>(services), slices: client.objects<EndpointSlice>(endpointSlices) }),
    answers: (like: Answers): Answers => Object.fromEntries(Object.keys(like).map((question) => [question, answered(question)])),
  };
}

type Cluster = ReturnType<typeof newCluster>;

/** Fails with the questions whose answers differ. */
function assertSame(got: Answers, want: Answers, when: string): void {
  const wrong = Object.keys(want).filter((question) => got[question] !== want[question]);
  assert.deepEqual(
    wrong.map((question) => `${question}: ${got[question]} instead of ${want[question]}`),
    [],
    when,
  );
}

/** Within two seconds of the cluster's time. */
async function assertRight(cluster: Cluster, state: State, when: string): Promise<void> {
  const want = expected(state);
  await cluster.clock.advance(2_000);
  assertSame(cluster.answers(want), want, when);
}

for (const seed of [1, 2, 3]) {
  test(`answers are those of the last state, whatever happens to the watches (seed ${seed})`, async (t) => {
    const cluster = newCluster(seed);
    const { client, clock } = cluster;
    const ending = new AbortController();
    t.after(() => ending.abort());
    cluster.change(200);
    cluster.informers.start(ending.signal);
    await assertRight(cluster, cluster.state(), "at the start");
    const kinds = new Set(Object.values(expected(cluster.state())).map((answer) => answer.replace(/[0-9].*/, "address")));
    assert.ok(kinds.has("NXDOMAIN") && kinds.has("address") && kinds.has("a.example"), "the model has answers of all kinds");

    for (let round = 0; round < 10; round++) {
      await clock.advance(backoffResetMs);
      cluster.change(100);
      if (round % 3 === 1) client.endWatches();
      if (round % 3 === 2) {
        client.compact();
        client.endWatches();
      }
      cluster.change(20);
      await assertRight(cluster, cluster.state(), `round ${round}`);
    }

    let isAway = true;
    const before = cluster.state();
    for (const verb of ["list", "watch"] as const) {
      client.react(verb, "*", () => {
        if (isAway) throw serviceUnavailable("the API server is away");
        return undefined;
      });
    }
    client.endWatches();
    cluster.change(100);
    const asBefore = expected(before);
    assert.notDeepEqual(expected(cluster.state()), asBefore, "something has changed meanwhile");
    await clock.advance(fiveMinutesMs / 2);
    clock.setOn(-fiveMinutesMs);
    await clock.advance(fiveMinutesMs / 2);
    assertSame(cluster.answers(asBefore), asBefore, "after five minutes without an API server");
    isAway = false;
    await clock.advance(60_000); // the longest backoff of an informer
    await assertRight(cluster, cluster.state(), "when it is back");
  });
}

test("after etcd was restored to an older revision answers are those of that revision, and follow what is written then", async (t) => {
  const cluster = newCluster(4);
  const { client, clock } = cluster;
  const ending = new AbortController();
  t.after(() => ending.abort());
  cluster.change(200);
  const saved = deepClone(cluster.state());
  cluster.informers.start(ending.signal);
  cluster.change(200);
  client.put(services, aService("s0", { clusterIP: "10.96.1.1" }));
  // Of two histories one revision may be of different states.
  const { metadata } = client.object<Service>(services, "default/s0") as Service;
  const beside = saved.services.filter((service) => service.metadata.name !== "s0");
  const other = { ...aService("s0", { type: "ExternalName", externalName: "other.example" }), metadata };
  const old: State = { services: [...beside, other], slices: saved.slices };
  await assertRight(cluster, cluster.state(), "before");
  assert.notDeepEqual(expected(cluster.state()), expected(old));

  // A server over the restored data: lists are older than what the informers have, and their watches are refused.
  const restored: (readonly [ResourceRef, readonly KubeObject[]])[] = [
    [services, old.services],
    [endpointSlices, old.slices],
  ];
  let isRestoring = true;
  for (const [ref, items] of restored) {
    const kept = new Set(items.map(keyOf));
    for (const object of client.objects(ref)) if (!kept.has(keyOf(object))) client.remove(ref, keyOf(object));
    client.react("list", ref.resource, () =>
      isRestoring ? { metadata: { resourceVersion: "101" }, items: deepClone(items) } : undefined,
    );
  }
  client.compact();
  client.endWatches();
  await clock.advance(60_000);
  await assertRight(cluster, old, "restored");
  isRestoring = false;
  for (const [ref, items] of restored) client.put(ref, ...deepClone(items));
  cluster.change(100);
  client.endWatches();
  await clock.advance(60_000);
  await assertRight(cluster, cluster.state(), "written after the restoration");
});
