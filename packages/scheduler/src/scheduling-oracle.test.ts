import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, Taint, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { aTestNode, aTestPod, newTestCluster } from "./testing/test-cluster.ts";

/**
 * Fills random clusters pod by pod. After each decision an independent, naive implementation of the rules verifies that
 * the node was allowed, or that no node was.
 */
const apps = ["web", "db", "cache"] as const;
const zoneKey = "topology.kubernetes.io/zone";
const hostKey = "kubernetes.io/hostname";

interface Wish {
  readonly app: (typeof apps)[number];
  readonly cpu: number;
  readonly port: boolean;
  readonly tolerates: boolean;
  readonly pool: string | undefined;
  readonly near: string | undefined;
  readonly away: string | undefined;
  readonly key: string;
  readonly skew: number | undefined;
}
interface Place {
  readonly cpu: number;
  readonly zone: string | undefined;
  readonly pool: string;
  readonly tainted: boolean;
  readonly cordoned: boolean;
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 });
const wishes = fc.record<Wish>({
  app: fc.constantFrom(...apps),
  cpu: fc.integer({ min: 0, max: 3 }),
  port: fc.boolean(),
  tolerates: fc.boolean(),
  pool: maybe(fc.constantFrom("1", "2")),
  near: maybe(fc.constantFrom(...apps)),
  away: maybe(fc.constantFrom(...apps)),
  key: fc.constantFrom(zoneKey, hostKey),
  skew: maybe(fc.integer({ min: 1, max: 2 })),
});
const places = fc.record<Place>({
  cpu: fc.integer({ min: 0, max: 6 }),
  zone: fc.option(fc.constantFrom("x", "y"), { nil: undefined, freq: 6 }),
  pool: fc.constantFrom("1", "2"),
  tainted: fc.boolean(),
  cordoned: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
});

const taint: Taint = { key: "dedicated", value: "db", effect: "NoSchedule" };
const toleration: Toleration = { key: "dedicated", operator: "Exists" };

const nodeOf = ({ cpu, zone, pool, tainted, cordoned }: Place, i: number): Node =>
  aTestNode(`n${i}`, {
    cpu: String(cpu),
    pods: "4",
    labels: { pool, ...(zone === undefined ? {} : { [zoneKey]: zone }) },
    spec: { ...(tainted ? { taints: [taint] } : {}), ...(cordoned ? { unschedulable: true } : {}) },
  });

function podOf(wish: Wish, i: number): Pod {
  const term = (app: string) => ({ topologyKey: wish.key, labelSelector: { matchLabels: { app } } });
  const required = (app: string) => ({ requiredDuringSchedulingIgnoredDuringExecution: [term(app)] });
  return aTestPod(`p${i}`, {
    labels: { app: wish.app },
    spec: {
      containers: [
        {
          name: "main",
          image: "busybox",
          resources: { requests: { cpu: String(wish.cpu) } },
          ...(wish.port ? { ports: [{ containerPort: 80, hostPort: 80 }] } : {}),
        },
      ],
      ...(wish.tolerates ? { tolerations: [toleration] } : {}),
      ...(wish.pool === undefined ? {} : { nodeSelector: { pool: wish.pool } }),
      affinity: {
        ...(wish.near === undefined ? {} : { podAffinity: required(wish.near) }),
        ...(wish.away === undefined ? {} : { podAntiAffinity: required(wish.away) }),
      },
      ...(wish.skew === undefined
        ? {}
        : { topologySpreadConstraints: [{ ...term(wish.app), maxSkew: wish.skew, whenUnsatisfiable: "DoNotSchedule" }] }),
    },
  });
}

interface Placed {
  readonly wish: Wish;
  readonly on: number;
}

const labelOf = (places: readonly Place[], i: number, key: string): string | undefined =>
  key === hostKey ? `n${i}` : places[i]?.zone;

/** All rules that forbid the pod on the node. */
function violations(wish: Wish, on: number, places: readonly Place[], placed: readonly Placed[]): string[] {
  const place = places[on] as Place;
  const here = placed.filter((other) => other.on === on);
  const domain = labelOf(places, on, wish.key);
  const sharing = (other: Placed, key: string): boolean =>
    labelOf(places, on, key) !== undefined && labelOf(places, other.on, key) === labelOf(places, on, key);
  const found: string[] = [];
  if (here.length + 1 > 4) found.push("pods");
  if (wish.cpu > 0 && here.reduce((sum, other) => sum + other.wish.cpu, wish.cpu) > place.cpu) found.push("cpu");
  if (wish.port && here.some((other) => other.wish.port)) found.push("port");
  if (place.tainted && !wish.tolerates) found.push("taint");
  if (place.cordoned) found.push("cordoned");
  if (wish.pool !== undefined && wish.pool !== place.pool) found.push("pool");
  if (wish.near !== undefined) {
    const matching = placed.filter((other) => other.wish.app === wish.near && labelOf(places, other.on, wish.key) !== undefined);
    const isFirst = matching.length === 0 && wish.near === wish.app;
    if (domain === undefined || !(isFirst || matching.some((other) => sharing(other, wish.key)))) found.push("near");
  }
  if (wish.away !== undefined && placed.some((other) => other.wish.app === wish.away && sharing(other, wish.key)))
    found.push("away");
  if (placed.some((other) => other.wish.away === wish.app && sharing(other, other.wish.key))) found.push("refused");
  if (wish.skew !== undefined) {
    const eligible = places.flatMap((each, i) => (wish.pool === undefined || wish.pool === each.pool ? [i] : []));
    const domains = new Set(eligible.flatMap((i) => labelOf(places, i, wish.key) ?? []));
    const countIn = (of: string): number =>
      placed.filter((other) => other.wish.app === wish.app && labelOf(places, other.on, wish.key) === of).length;
    const least = Math.min(...[...domains].map(countIn));
    if (domain === undefined || countIn(domain) + 1 - least > wish.skew) found.push("skew");
  }
  return found;
}

test("no bound pod violates a rule, and no pod that fits a node is rejected", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(places, { minLength: 1, maxLength: 5 }),
      fc.array(wishes, { maxLength: 12 }),
      async (where, wanted) => {
        const nodes = where.map(nodeOf);
        const placed: Placed[] = [];
        const pods: Pod[] = [];
        for (const [i, wish] of wanted.entries()) {
          const pod = podOf(wish, i);
          const answer = await newTestCluster({ nodes, pods }).place(pod);
          const allowed = where.flatMap((_, n) => (violations(wish, n, where, placed).length === 0 ? [`n${n}`] : []));
          if (!answer.startsWith("n")) {
            assert.deepEqual(allowed, [], `pod ${i} was refused: ${answer}`);
            continue;
          }
          const on = Number(answer.slice(1));
          assert.deepEqual(violations(wish, on, where, placed), [], `pod ${i} on ${answer}`);
          placed.push({ wish, on });
          pods.push({ ...pod, spec: { ...pod.spec, nodeName: answer } });
        }
      },
    ),
    { numRuns: process.env["COX_TEST_LONG"] ? 5_000 : 300 },
  );
});
