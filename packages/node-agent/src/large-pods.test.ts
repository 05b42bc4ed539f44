/** Pods and what they refer to as large as the API server stores: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { environmentOf } from "./environment/env-vars.ts";
import { serviceEnvironment } from "./environment/service-links.ts";
import { misplaced } from "./pods/admission-checks.ts";
import { newMissingVolumes } from "./pods/missing-volumes.ts";
import { ProbeManager } from "./probes/probe-manager.ts";
import { criEnums, criMessages } from "./runtime/cri-schema.ts";
import { containerHash } from "./runtime/labels.ts";
import { newMessageCodec } from "./runtime/messages.ts";
import { noObjects } from "./sources/api-objects.ts";
import { statusPatch } from "./status/status-manager.ts";
import { aContainer, aNodePod, aPodWithVolumes } from "./testing/builders.ts";
import { newFakeRuntime } from "./testing/fake-runtime.ts";
import { newTestRunner } from "./testing/runner.ts";
import { writeAtomically } from "./volumes/atomic-writer.ts";
import { configMapFiles, downwardFiles } from "./volumes/payload.ts";
import { projected } from "./volumes/projected.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const dict = (count: number, value = "v"): Record<string, string> => Object.fromEntries(many(count, (at) => [`k${at}`, value]));
const downward = { nodeName: "n1", hostIps: ["192.0.2.1"], podIps: ["10.0.0.1"], allocatable: {} };

async function takesNoLongTurn(t: TestContext, turn: () => void): Promise<void> {
  const least = await leastOf(longestTurnMs, async () => cpuMsOf(turn));
  t.diagnostic(`${least} ms`);
  assert.ok(least < longestTurnMs, `${least} ms`);
}

/** As `takesNoLongTurn`, for work in several turns. */
async function takesShortTurns(t: TestContext, work: (round: number) => Promise<void>): Promise<void> {
  const longest = await longestTurnOf(longestTurnMs, work);
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
}

const configMap = { metadata: { name: "c" }, data: dict(100_000) };
/** Of keys that are no names of variables. */
const numbered = { metadata: { name: "n" }, data: Object.fromEntries(many(160_000, (at) => [`${(at * 7919) % 160_000}`, "v"])) };
const secret = { metadata: { name: "s" }, data: dict(50_000, "dg==") };
const tooLong = /the container's environment or command is longer than 6291456 characters/;

for (const { name, env, labels, refused } of [
  {
    name: "of 30,000 keys of a large ConfigMap",
    env: many(30_000, (at) => ({ name: `E${at}`, valueFrom: { configMapKeyRef: { name: "c", key: `k${at}` } } })),
  },
  {
    name: "of 30,000 keys of a large Secret",
    env: many(30_000, (at) => ({ name: `E${at}`, valueFrom: { secretKeyRef: { name: "s", key: `k${at}` } } })),
  },
  {
    name: "that double thirty times",
    env: many(30, (at) => ({ name: `E${at}`, value: at === 0 ? "0123456789" : `$(E${at - 1})$(E${at - 1})` })),
    refused: tooLong,
  },
  {
    name: "one of which names a long one 300,000 times",
    env: [
      { name: "E0", value: "x".repeat(100_000) },
      { name: "E1", value: "$(E0)".repeat(300_000) },
    ],
    refused: tooLong,
  },
  {
    name: "that show 50,000 labels 10,000 times",
    env: many(10_000, (at) => ({ name: `E${at}`, valueFrom: { fieldRef: { fieldPath: "metadata.labels" } } })),
    labels: dict(50_000),
    refused: tooLong,
  },
]) {
  test(`variables ${name} are ${refused === undefined ? "made" : "refused"} without a long turn`, async (t) => {
    const container = aContainer({ env });
    const pod = aNodePod({ containers: [container] }, labels === undefined ? {} : { labels });
    const context = {
      ...{ ...downward, services: [], onInvalidNames: () => {} },
      objects: { ...noObjects, configMap: async () => configMap, secret: async () => secret },
    };
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const made = environmentOf(pod, container, context);
      if (refused === undefined) assert.equal((await made).size, env.length);
      else await assert.rejects(made, refused);
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `${longest} ms`);
  });
}

for (const { name, sources, refused } of [
  { name: "of a ConfigMap of 160,000 keys that are no names", sources: [{ configMapRef: { name: "n" } }] },
  {
    name: "of six ConfigMaps of 100,000 keys",
    sources: many(6, (at) => ({ prefix: `P${at}`, configMapRef: { name: "c" } })),
  },
  {
    name: "of a ConfigMap of 100,000 keys with 1,000 prefixes",
    sources: many(1_000, (at) => ({ prefix: `P${at}`, configMapRef: { name: "c" } })),
    refused: tooLong,
  },
]) {
  test(`variables ${name} are ${refused === undefined ? "made" : "refused"} without a long turn`, async (t) => {
    const container = aContainer({ envFrom: sources });
    let skipped = 0;
    await takesShortTurns(t, async () => {
      const context = {
        ...{ ...downward, services: [], turns: new Turns() },
        onInvalidNames(_: string, __: string, keys: readonly string[]) {
          skipped = keys.length;
        },
        objects: { ...noObjects, configMap: async (_: string, named: string) => (named === "n" ? numbered : configMap) },
      };
      const made = environmentOf(aNodePod({ containers: [container] }), container, context);
      if (refused !== undefined) await assert.rejects(made, refused);
      else assert.ok((await made).size + skipped >= 160_000);
    });
  });
}

test("a projected volume of eight times the same 100,000 keys is read without a long turn", async (t) => {
  const sources = [...many(8, () => ({ configMap: { name: "c" } })), { secret: { name: "absent" } }];
  const context = {
    ...{ pod: aNodePod(), volume: { name: "v", projected: { sources } }, downward, turns: new Turns() },
    objects: { ...noObjects, configMap: async () => configMap },
  };
  // Cast: what fails on its last source gets no further.
  await takesShortTurns(t, () => assert.rejects(projected.setUp(context as never), /secret "absent" not found/));
});

test("of 20,000 volumes that cannot be mounted, as many as the recorder writes are reported, without a long turn", async (t) => {
  const volumes = many(20_000, (at) => ({ name: `v${at}`, configMap: { name: `c${at}` } }));
  const failures = volumes.map(({ name }) => ({ volume: name, message: `configmap "${name}" not found`, cause: undefined }));
  await takesNoLongTurn(t, () => {
    let events = 0;
    const missing = newMissingVolumes({ clock: newFakeClock(), event: () => void events++ });
    missing.failed(aPodWithVolumes(volumes), failures);
    assert.equal(events, 100);
  });
});

test("15,000 conditions that others have set are compared without a long turn", (t) => {
  const conditions = many(15_000, (at) => ({ type: `example.com/c${at}`, status: "True" as const }));
  return takesNoLongTurn(t, () => {
    const patch = statusPatch({ conditions }, { conditions: structuredClone(conditions) });
    assert.equal((patch["conditions"] as unknown[]).length, conditions.length); // cast: a list in the patch, too
  });
});

test("the probes of 5,000 containers that have not started begin, and look again, without a long turn", async (t) => {
  const probe = { tcpSocket: { port: 1 } };
  const probes = { livenessProbe: probe, readinessProbe: probe, startupProbe: probe };
  const containers = many(5_000, (at) => aContainer({ name: `c${at}`, ...probes }));
  const containerStatuses = containers.map(({ name }) => ({ name, state: { waiting: {} } }));
  await takesShortTurns(t, async () => {
    const clock = newFakeClock();
    const due: (() => void)[] = [];
    const after = (_: number, fire: () => void) => {
      due.push(fire);
      return { cancel: () => {} };
    };
    let looks = 0;
    const manager = new ProbeManager({
      ...{ runtime: newFakeRuntime(clock), clock: { ...clock, after }, turns: new Turns() },
      ...{ log: discardLogger, grpcEnabled: false, event: () => {}, onChange: () => {} },
      statusOf() {
        looks++;
        return { phase: "Pending", containerStatuses: containerStatuses as never }; // cast: no other field of them is read
      },
    });
    manager.add(aNodePod({ containers }));
    for (const _ of ["first", "again"]) {
      looks = 0;
      for (const fire of due.splice(0)) fire(); // timers of the same moment
      await waitFor(() => looks === 15_000, { what: "each probe to look at its container" });
    }
  });
});

test("15,000 containers whose images have no valid name are not started without a long turn", async (t) => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const pod = aNodePod({ containers: many(15_000, (at) => aContainer({ name: `c${at}`, image: "No:Image:" })) });
  const { runner, events } = await newTestRunner(t, runtime, clock, { turns: new Turns() });
  await takesShortTurns(t, async () => void (await runner.sync(pod, new AbortController().signal)));
  assert.ok(events.filter(({ reason }) => reason === "InspectFailed").length >= 15_000);
});

test("the links of a Service of 20,000 ports are made without a long turn", async (t) => {
  const service = () => {
    const ports = many(20_000, (at) => ({ name: `p${at}`, port: at + 1, protocol: "TCP" as const }));
    return { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.96.0.1", ports } };
  };
  const longest = await leastOf(longestTurnMs, async () => {
    const steps = serviceEnvironment([service()], "default", true);
    let step: ReturnType<typeof steps.next> | undefined;
    let most = 0;
    for (let number = 0; step?.done !== true; number++) {
      most = Math.max(
        most,
        cpuMsOf(() => {
          step = steps.next();
        }),
      );
      assert.ok(number < 1000);
    }
    assert.ok((step?.value?.size ?? 0) > 100_000);
    return most;
  });
  t.diagnostic(`a step: ${longest} ms`);
  assert.ok(longest < longestTurnMs / 3, `${longest} ms`);
  const pod = aNodePod({ containers: [aContainer()] });
  const made = await longestTurnOf(longestTurnMs, async () => {
    const context = { ...downward, services: [service()], objects: noObjects, turns: new Turns(), onInvalidNames: () => {} };
    assert.ok((await environmentOf(pod, pod.spec.containers[0]!, context)).size > 100_000);
  });
  t.diagnostic(`${made} ms`);
  assert.ok(made < longestTurnMs, `${made} ms`);
});

test("20,000 files that show resources of 5,000 containers are made without a long turn", (t) => {
  const containers = many(5000, (at) => aContainer({ name: `c${at}`, resources: { limits: { cpu: "1" } } }));
  const items = many(20_000, (at) => ({
    path: `f${at}`,
    resourceFieldRef: { containerName: `c${at % 5000}`, resource: "limits.cpu", divisor: "1m" },
  }));
  return takesNoLongTurn(t, () => {
    const files = downwardFiles(aNodePod({ containers }), items, 0o644, downward);
    assert.equal(String(files.get("f19999")?.data), "1000");
  });
});

test("20,000 addresses that the pod network gives to a pod are read, and its status is patched, without a long turn", async (t) => {
  const addresses = many(20_000, (at) => ({ ip: `fd00::${at.toString(16)}` }));
  const { encode, decode } = newMessageCodec(criMessages, criEnums);
  const bytes = encode("PodSandboxStatusResponse", { status: { network: { ip: "192.0.2.1", additionalIps: addresses } } });
  await takesNoLongTurn(t, () => {
    const { status } = decode("PodSandboxStatusResponse", bytes);
    assert.equal(status?.network?.additionalIps.length, addresses.length);
  });
  await takesNoLongTurn(t, () => void statusPatch({ podIPs: addresses }, { podIPs: [...addresses] }));
});

test("10,000 files that show 50,000 labels share their content", (t) => {
  const pod = aNodePod({}, { labels: dict(50_000) });
  const items = many(10_000, (at) => ({ path: `f${at}`, fieldRef: { fieldPath: "metadata.labels" } }));
  return takesNoLongTurn(t, () => {
    const files = downwardFiles(pod, items, 0o644, downward);
    assert.equal(files.get("f0")?.data, files.get("f9999")?.data);
  });
});

test("the files of a ConfigMap of 100,000 keys are made, and their paths checked, each without a long turn", async (t) => {
  const objects = { ...noObjects, configMap: async () => configMap };
  const make = () => configMapFiles(objects, "default", { name: "c" }, 0o644, new Turns());
  const longest = await longestTurnOf(longestTurnMs, async () => void (await make()));
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
  const files = (await make()).set("..", { data: Buffer.alloc(0), mode: 0o644 });
  const checked = await longestTurnOf(longestTurnMs, () => assert.rejects(writeAtomically("/absent", files, 0), /invalid path/));
  t.diagnostic(`${checked} ms`);
  assert.ok(checked < longestTurnMs, `${checked} ms`);
});

test("pods of 10,000 ports of the host each are compared without a long turn", (t) => {
  const pod = (first: number) =>
    aNodePod({ containers: [aContainer({ ports: many(10_000, (at) => ({ containerPort: 1, hostPort: first + at })) })] });
  const [one, others] = [pod(1), [pod(10_001), pod(20_001)]];
  const input = { pod: one, others, node: { metadata: {}, spec: {}, name: "n1" }, allocatable: {} };
  return takesNoLongTurn(t, () => assert.equal(misplaced(input), undefined));
});

test("a container of 40,000 variables is hashed without a long turn, and once", async (t) => {
  const make = () => aContainer({ env: many(40_000, (at) => ({ name: `E${at}`, value: "v" })) });
  await takesNoLongTurn(t, () => void containerHash(make()));
  const container = make();
  const hash = containerHash(container);
  const again = cpuMsOf(() => assert.equal(containerHash(container), hash));
  assert.ok(again < 5, `${again} ms`);
});
