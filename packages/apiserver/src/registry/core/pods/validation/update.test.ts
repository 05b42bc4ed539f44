import assert from "node:assert/strict";
import { test } from "node:test";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { defaultPod } from "../defaults.ts";
import { podValidationOptions } from "./options.ts";
import { validateEphemeralContainersUpdate, validatePodStatusUpdate, validatePodUpdate } from "./update.ts";

const options = podValidationOptions(() => false);

function aPod(spec: object = {}): Pod {
  const pod = {
    metadata: { name: "p", namespace: "default" },
    spec: { containers: [{ name: "c", image: "x" }], ...spec },
  } as Pod;
  defaultPod(pod);
  return pod;
}

for (const { name, current = aPod(), change, want } of [
  { name: "an image", change: (pod: Pod) => Object.assign(pod.spec.containers[0] as object, { image: "y" }), want: [] },
  { name: "a first deadline", change: (pod: Pod) => Object.assign(pod.spec, { activeDeadlineSeconds: 5 }), want: [] },
  {
    name: "a later deadline",
    current: aPod({ activeDeadlineSeconds: 5 }),
    change: (pod: Pod) => Object.assign(pod.spec, { activeDeadlineSeconds: 6 }),
    want: ["spec.activeDeadlineSeconds"],
  },
  {
    name: "one more toleration",
    change: (pod: Pod) => Object.assign(pod.spec, { tolerations: [{ operator: "Exists" }] }),
    want: [],
  },
  {
    name: "one toleration less",
    current: aPod({ tolerations: [{ operator: "Exists" }] }),
    change: (pod: Pod) => void delete pod.spec.tolerations,
    want: ["spec.tolerations"],
  },
  { name: "a node", change: (pod: Pod) => Object.assign(pod.spec, { nodeName: "n" }), want: ["spec"] },
  {
    name: "a command",
    change: (pod: Pod) => Object.assign(pod.spec.containers[0] as object, { command: ["x"] }),
    want: ["spec"],
  },
  {
    name: "one container more",
    change: (pod: Pod) => void pod.spec.containers.push({ ...(pod.spec.containers[0] as object), name: "d" }),
    want: ["spec.containers"],
  },
]) {
  test(`${want.length === 0 ? "takes" : "refuses"} ${name}`, () => {
    const next = deepClone(current);
    change(next);
    assert.deepEqual(
      atOnce(validatePodUpdate(next, current, options)).map((error) => error.field),
      want,
    );
  });
}

test("says which fields may change, and what differs", () => {
  const current = aPod();
  const next = deepClone(current);
  next.spec.hostNetwork = true;
  const [error] = atOnce(validatePodUpdate(next, current, options));
  assert.match(error?.detail ?? "", /^pod updates may not change fields other than `spec\.containers\[\*\]\.image`, /);
  assert.match(error?.detail ?? "", /\n {2}hostNetwork: unset -> true$/);
});

test("a terminated container may not become running with restartPolicy Never", () => {
  const over = { name: "c", image: "x", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode: 0 } } };
  const current = { ...aPod({ restartPolicy: "Never" }), status: { containerStatuses: [over] } };
  const next = { ...current, status: { containerStatuses: [{ ...over, state: { running: {} } }] } };
  assert.deepEqual(
    atOnce(validatePodStatusUpdate(next, current, options)).map((error) => error.field),
    ["status.containerStatuses[0].state"],
  );
});

for (const { restartPolicy, exitCode, want } of [
  { restartPolicy: "Always", exitCode: 0, want: ["ephemeralContainerStatuses"] },
  { restartPolicy: "OnFailure", exitCode: 1, want: ["ephemeralContainerStatuses"] },
  { restartPolicy: "OnFailure", exitCode: -1, want: ["ephemeralContainerStatuses"] },
  {
    restartPolicy: "OnFailure",
    exitCode: 0,
    want: ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"],
  },
]) {
  test(`of containers that ended with ${exitCode}, ${want.join(" and ")} do not become running with restartPolicy ${restartPolicy}`, () => {
    const over = { name: "c", image: "x", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode } } };
    const statusOf = (status: typeof over | object) =>
      Object.fromEntries(
        ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"].map((field) => [
          field,
          [{ ...over, ...status }],
        ]),
      );
    const current: Pod = { ...aPod({ restartPolicy }), status: statusOf({}) };
    const next: Pod = { ...current, status: statusOf({ state: { running: {} } }) };
    assert.deepEqual(
      atOnce(validatePodStatusUpdate(next, current, options)).map((error) => error.field),
      want.map((field) => `status.${field}[0].state`),
    );
  });
}

for (const { name, states, want } of [
  { name: "of which nothing is said", states: [], want: false },
  { name: "that stays terminated, beside another of its name that runs", states: ["terminated", "running"], want: false },
  { name: "that waits, beside another of its name that is terminated", states: ["waiting", "terminated"], want: true },
]) {
  test(`a status of a terminated second container ${name} is ${want ? "refused" : "taken"}`, () => {
    const statusOf = (container: string, state: string): object => ({
      ...{ name: container, image: "x", imageID: "", ready: false, restartCount: 0 },
      state: { [state]: state === "terminated" ? { exitCode: 0 } : {} },
    });
    const withStatuses = (...containerStatuses: object[]): Pod =>
      ({ ...aPod({ restartPolicy: "Never" }), status: { containerStatuses } }) as Pod;
    const current = withStatuses(statusOf("b", "running"), statusOf("c", "terminated"));
    const next = withStatuses(statusOf("b", "running"), ...states.map((state) => statusOf("c", state)));
    assert.deepEqual(
      atOnce(validatePodStatusUpdate(next, current, options)).map((error) => error.field),
      want ? ["status.containerStatuses[1].state"] : [],
    );
  });
}

test("the policy of the stored pod says whether a container may start again", () => {
  const of = (restartPolicy: string, state: object): Pod =>
    ({ ...aPod({ restartPolicy }), status: { containerStatuses: [{ name: "c", state }] } }) as Pod;
  const errors = validatePodStatusUpdate(of("Always", { running: {} }), of("Never", { terminated: {} }), options);
  assert.deepEqual(
    atOnce(errors).map((error) => error.field),
    ["status.containerStatuses[0].state"],
  );
});

test("ephemeral containers are added and neither changed nor removed", () => {
  const current = aPod();
  const added = deepClone(current);
  const debug = { name: "debug", image: "x", imagePullPolicy: "Always", terminationMessagePolicy: "File" };
  added.spec.ephemeralContainers = [debug];
  assert.deepEqual(atOnce(validateEphemeralContainersUpdate(added, current, options)), []);
  assert.deepEqual(
    atOnce(validateEphemeralContainersUpdate(current, added, options)).map((error) => error.field),
    ["spec.ephemeralContainers"],
  );
  const changed = deepClone(added);
  for (const change of [{ image: "y" }, { command: ["sh"] }, { targetContainerName: "c" }]) {
    changed.spec.ephemeralContainers = [{ ...debug, ...change }];
    assert.equal(atOnce(validateEphemeralContainersUpdate(changed, added, options)).length, 1, JSON.stringify(change));
  }
});

test("of two ephemeral containers of one name the last one is compared with the stored one, and both are one too many", () => {
  const debug = { name: "debug", image: "x", imagePullPolicy: "Always", terminationMessagePolicy: "File" };
  const of = (...images: string[]): Pod => aPod({ ephemeralContainers: images.map((image) => ({ ...debug, image })) });
  const fields = (next: Pod) => atOnce(validateEphemeralContainersUpdate(next, of("x"), options)).map(({ field }) => field);
  assert.deepEqual(fields(of("y", "x")), ["spec.ephemeralContainers[1].name"]);
  assert.deepEqual(fields(of("x", "y")), ["spec.ephemeralContainers[1].name", "spec.ephemeralContainers"]);
});

test("a spec that stays the same is validated whole, as one that changes", () => {
  const current = aPod();
  const next = (): Pod => ({ ...deepClone(current), metadata: { ...current.metadata, labels: { a: "b" } } });
  assert.deepEqual(atOnce(validatePodUpdate(next(), current, options)), []);
  Object.assign(current.spec, { dnsPolicy: "Wrong" });
  assert.deepEqual(
    atOnce(validatePodUpdate(next(), current, options)).map(({ field }) => field),
    ["spec.dnsPolicy"],
  );
  const [error] = atOnce(validatePodUpdate({ ...next(), spec: { ...next().spec, restartPolicy: "Never" } }, current, options));
  assert.equal(error?.field, "spec.dnsPolicy", "a change is looked at whole");
});

test("a stored spec that is wrong by today's rules is refused every time, though it stays the same", () => {
  const current = aPod({ dnsPolicy: "Wrong" });
  const fields = () => atOnce(validatePodUpdate(deepClone(current), current, options)).map(({ field }) => field);
  assert.deepEqual(fields(), ["spec.dnsPolicy"]);
  assert.deepEqual(fields(), ["spec.dnsPolicy"]);
});

test("annotations are looked at with a known spec too, and reported twice as upstream does", () => {
  const current = aPod();
  atOnce(validatePodUpdate(deepClone(current), current, options));
  const key = "controller.kubernetes.io/pod-deletion-cost";
  const next = { ...deepClone(current), metadata: { ...current.metadata, annotations: { [key]: "much" } } };
  const strict = { ...options, anyPodDeletionCost: false };
  const fields = atOnce(validatePodUpdate(next, current, strict)).map(({ field }) => field);
  assert.deepEqual(fields, [`metadata.annotations[${key}]`, `metadata.annotations[${key}]`]);
});
