/** Which policy is chosen for a pod, and who may use it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import type { PodObject } from "./pod-of.ts";
import { podSecurityPolicy } from "./pod-security-policy.ts";

const any = { rule: "RunAsAny" };
const aPolicy = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { seLinux: any, runAsUser: any, supplementalGroups: any, fsGroup: any, volumes: ["*"], ...spec },
});
const aPod = (metadata: object = {}, container: object = {}): PodObject => ({
  metadata: { name: "x", namespace: "web", ...metadata },
  spec: { containers: [{ name: "c", ...container }], serviceAccountName: "robot" },
});

interface Case {
  readonly policies?: readonly object[];
  readonly operation?: "CREATE" | "UPDATE";
  readonly subresource?: string;
  readonly object?: PodObject;
  readonly oldObject?: PodObject;
  /** Whether a question to the authorizer is answered with yes. */
  readonly allows?: (question: { user: { name: string }; group: string; name: string }) => boolean;
}

/** Runs one of the plugin's phases; returns the audit annotations and the questions asked. */
async function run(phase: "admit" | "validate", { policies = [aPolicy("a")], operation = "CREATE", ...given }: Case) {
  const annotations: Record<string, string> = {};
  const asked: string[] = [];
  const plugin = podSecurityPolicy({
    informers: { for: () => ({ synced: Promise.resolve(), lister: { list: () => policies } }) },
    authorize: async (question: { user: { name: string }; group: string; name: string }) => {
      asked.push(`${question.user.name} ${question.group} ${question.name}`);
      return { decision: (given.allows ?? (() => true))(question) ? "allow" : "no opinion" };
    },
  } as unknown as PluginContext);
  const resource = { group: "", version: "v1", resource: "pods" };
  await plugin[phase]?.({
    ...{ operation, resource, subresource: given.subresource ?? "", namespace: "web", name: "x" },
    ...{ kind: { group: "", version: "v1", kind: "Pod" }, user: { name: "jane", groups: [] } },
    ...{ object: given.object ?? aPod(), oldObject: given.oldObject },
    annotate: (key: string, value: string) => void Object.assign(annotations, { [key]: value }),
  } as unknown as AdmissionAttributes<PodObject>);
  return { annotations, asked };
}

test("the pod's account is asked for before the user, each in both groups of policies", async () => {
  const { asked } = await run("validate", { allows: ({ user, group }) => user.name === "jane" && group === "extensions" });
  assert.deepEqual(asked, [
    "system:serviceaccount:web:robot policy a",
    "system:serviceaccount:web:robot extensions a",
    "jane policy a",
    "jane extensions a",
  ]);
});

test("the audit event names the policy of each phase", async () => {
  const policies = [aPolicy("b"), aPolicy("a", { readOnlyRootFilesystem: true })];
  assert.deepEqual((await run("admit", { policies })).annotations, { "podsecuritypolicy.policy.k8s.io/admit-policy": "b" });
  assert.deepEqual((await run("validate", { policies })).annotations, {
    "podsecuritypolicy.policy.k8s.io/validate-policy": "b",
  });
});

const updated = { operation: "UPDATE", oldObject: aPod({ finalizers: ["a/b"] }) } as const;

test("an update of owners and finalizers alone needs no policy", async () => {
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n", uid: "1" }];
  await run("validate", { ...updated, policies: [], object: aPod({ finalizers: ["c/d"], ownerReferences, managedFields: [] }) });
  for (const object of [aPod({ finalizers: ["a/b"], labels: { a: "b" } }), aPod({}, { image: "x" })])
    await assert.rejects(run("validate", { ...updated, policies: [], object }), /no providers available/);
});

test("on an update the policy that the pod was admitted by is tried first, then the others by name", async () => {
  const policies = [aPolicy("c"), aPolicy("b"), aPolicy("a")];
  const object = aPod({ annotations: { "kubernetes.io/psp": "b" } });
  const allows = ({ name }: { name: string }): boolean => name === "c";
  const orderOf = async (given: Case) => [...new Set((await run("validate", given)).asked.map((text) => text.split(" ")[2]))];
  assert.deepEqual(await orderOf({ ...updated, object, policies, allows }), ["b", "a", "c"]);
  assert.deepEqual(await orderOf({ ...updated, object: aPod({ labels: { a: "b" } }), policies, allows }), ["a", "b", "c"]);
});

test("an update that a policy would have to change is refused, and is not told of policies that may not be used", async () => {
  const policies = [aPolicy("a", { readOnlyRootFilesystem: true }), aPolicy("b", { privileged: false })];
  const object = aPod({ labels: { a: "b" } }, { securityContext: { privileged: true } });
  const refused = (allows?: Case["allows"]) => run("validate", { ...updated, object, policies, ...(allows && { allows }) });
  const privileged = "spec.containers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed";
  await assert.rejects(refused(), ({ message }: Error) =>
    message.endsWith(`unable to validate pod: [${privileged} ${privileged}]`),
  );
  await assert.rejects(
    refused(() => false),
    ({ message }: Error) => message.endsWith("unable to validate pod: []"),
  );
  const wouldChange = { ...updated, object: aPod({ labels: { a: "b" } }), policies: policies.slice(0, 1) };
  await assert.rejects(run("validate", wouldChange), /unable to validate pod: \[\]$/);
});

test("a pod without an account needs its user's right alone", async () => {
  const object = aPod();
  delete object.spec.serviceAccountName;
  assert.deepEqual((await run("validate", { object })).asked, ["jane policy a"]);
  await assert.rejects(run("validate", { object, allows: ({ user }) => user.name !== "jane" }), /unable to validate pod: \[\]$/);
});

test("for new ephemeral containers a policy may change these, and nothing else", async () => {
  const policies = [aPolicy("a", { readOnlyRootFilesystem: true })];
  const withEphemeral = (context: object): PodObject => {
    const pod = aPod({}, { securityContext: context });
    return { ...pod, spec: { ...pod.spec, ephemeralContainers: [{ name: "e" }] } };
  };
  const update = { operation: "UPDATE", subresource: "ephemeralcontainers", oldObject: aPod(), policies } as const;
  const object = withEphemeral({ readOnlyRootFilesystem: true });
  await run("admit", { ...update, object });
  assert.deepEqual(object.spec.ephemeralContainers, [{ name: "e", securityContext: { readOnlyRootFilesystem: true } }]);
  await assert.rejects(run("admit", { ...update, object: withEphemeral({}) }), /unable to admit pod: \[\]$/);
});

test("writes of other parts of pods and of other resources are not looked at", async () => {
  for (const more of [{ subresource: "status" }, { subresource: "binding" }])
    for (const phase of ["admit", "validate"] as const) await run(phase, { ...more, policies: [] });
});
