/** Sixty stuck situations: the first line of `kubectl why` names the true cause of each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../framework/api.ts";
import { KubectlError, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";
import { admissionSituations } from "./admission.ts";
import { autoscalingSituations } from "./autoscaling.ts";
import { deletionSituations } from "./deletions.ts";
import { nodeSituations, realNode } from "./nodes.ts";
import { firstLine, why } from "./plugin.ts";
import { podSituations } from "./pods.ts";
import { rolloutSituations } from "./rollouts.ts";
import { serviceSituations } from "./services.ts";
import type { Manifest, Situation, Step } from "./situation.ts";
import { volumeSituations } from "./volumes.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;

/** Created together, queried one after the other. */
const together: readonly Situation[] = [
  ...podSituations,
  ...deletionSituations.filter(({ name }) => name !== "api-service-away"),
  ...rolloutSituations,
  ...volumeSituations,
  ...serviceSituations,
  ...admissionSituations,
  ...autoscalingSituations,
];
/** These are seen in other namespaces too. */
const alone: readonly Situation[] = [...nodeSituations, ...deletionSituations.filter(({ name }) => name === "api-service-away")];

const namespaceOf = ({ name }: Situation): string => `why-${name}`;

const clusterScoped = new Set([
  "PersistentVolume",
  "StorageClass",
  "Node",
  "APIService",
  "CustomResourceDefinition",
  "IngressClass",
]);
const hasNamespace = ({ kind }: Manifest): boolean => !clusterScoped.has(kind) && !kind.endsWith("WebhookConfiguration");

const placed = (object: Manifest, namespace: string): Manifest =>
  hasNamespace(object) ? { ...object, metadata: { ...object.metadata, namespace } } : object;

/** The service account of a new namespace is made by a controller. */
const isEarly = (err: Error): boolean =>
  err instanceof KubectlError && /serviceaccount "default" not found|no matches for kind/.test(err.outcome.stderr);

async function untilDone(what: string, run: () => Promise<unknown>): Promise<void> {
  const attempt = async (): Promise<true> => {
    await run();
    return true;
  };
  await waitFor(what, attempt, { retry: isEarly });
}

/** One `kubectl apply` for all of them. */
async function make(situations: readonly Situation[]): Promise<void> {
  const namespaces = situations.map(({ name, labels }) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: `why-${name}`, labels },
  }));
  const objects = situations.flatMap((one) => one.objects.map((object) => placed(object, namespaceOf(one))));
  await apply(namespaces);
  await untilDone("the objects of the situations", () => apply(objects));
  for (const one of situations) for (const step of one.steps ?? []) await take(step, namespaceOf(one));
}

async function apply(items: readonly object[]): Promise<void> {
  if (items.length === 0) return;
  await kubectl("apply", "-f", "-", { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
}

const withNode = (args: readonly string[]): string[] => args.map((arg) => arg.replace(realNode, settings.nodeName));

async function take(step: Step, namespace: string): Promise<void> {
  if ("make" in step) {
    await untilDone("an object of a situation", () => apply([placed(step.make, namespace)]));
  } else if ("status" in step) {
    const headers = { "content-type": "application/merge-patch+json" };
    const { code, text } = await send("PATCH", `${step.of}/status`, JSON.stringify({ status: step.status }), headers);
    assert.equal(code, 200, text);
  } else {
    await untilDone(step.join(" "), () => kubectl("-n", namespace, ...withNode(step)));
  }
}

async function undo(situations: readonly Situation[]): Promise<void> {
  for (const one of situations) {
    for (const step of one.undo ?? []) await tryKubectl(["-n", namespaceOf(one), ...withNode(step)]);
  }
  await tryKubectl(["delete", "namespace", ...situations.map(namespaceOf), "--wait=false", "--ignore-not-found"]);
}

async function check(situation: Situation): Promise<void> {
  const args = withNode(situation.args);
  const { code } = await waitFor(
    `${situation.phrase} of kubectl why ${args.join(" ")}`,
    async () => {
      const answer = await why(args, namespaceOf(situation));
      return situation.phrase.test(firstLine(answer)) ? answer : undefined;
    },
    { timeoutMs: 180_000 },
  );
  assert.equal(code, 1);
}

test("the table has the sixty situations of its groups", () => {
  assert.deepEqual(
    [
      podSituations,
      deletionSituations,
      rolloutSituations,
      volumeSituations,
      serviceSituations,
      admissionSituations,
      autoscalingSituations,
      nodeSituations,
    ].map(({ length }) => length),
    [15, 8, 8, 6, 6, 5, 5, 7],
  );
  const all = [...together, ...alone];
  assert.deepEqual([all.length, new Set(all.map(namespaceOf)).size], [60, 60]);
});

const requested = isLong ? together : together.filter(({ quick }) => quick);

test("the first line of kubectl why names the cause", async (t) => {
  t.after(() => undo(requested));
  await make(requested);
  for (const situation of requested) await t.test(situation.name, () => check(situation));
});

test("and of what concerns the whole cluster", { skip: isLong ? false : "takes minutes, with --long" }, async (t) => {
  for (const situation of alone) {
    await t.test(situation.name, async (s) => {
      s.after(() => undo([situation]));
      await make([situation]);
      await check(situation);
    });
  }
});

test("an object that is well is said to be, with exit code 0", async () => {
  const answer = await why(["svc/kubernetes"], "default");
  assert.deepEqual([answer.code, firstLine(answer)], [0, "Healthy: service/kubernetes: nothing is wrong with it."]);
  assert.equal((await why(["node", settings.nodeName], "default")).code, 0);
});
