import assert from "node:assert/strict";
import { test } from "node:test";
import { required } from "@coxswain/apimachinery/objects/errors/field-error";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { resourcesForTests } from "../../testing/kind-rules.ts";
import { beforeCreate, generatedNameAttempts, groupKind } from "./before-create.ts";
import type { Strategy } from "./strategy.ts";
import { configMap, ctx, definitionOf } from "./testing.ts";

const create = (object: KubeObject, strategy: Partial<Strategy> = {}): boolean => {
  const whole = { namespaceScoped: true, ...strategy };
  return atOnce(beforeCreate(definitionOf(whole), whole, ctx(), object));
};
const faultsOf = (object: KubeObject, strategy: Partial<Strategy>): (string | undefined)[] => {
  try {
    create(object, strategy);
    return [];
  } catch (err) {
    assert.ok(err instanceof StatusError);
    return err.status.details?.causes?.map(({ field }) => field) ?? [];
  }
};

test("fields of the system are those of the server, whatever a new object says", () => {
  const said: ObjectMeta = {
    ...{ name: "a", uid: "u", creationTimestamp: "2000-01-01T00:00:00Z", selfLink: "/x", clusterName: "c" },
    ...{ deletionTimestamp: "2000-01-01T00:00:00Z", deletionGracePeriodSeconds: 5, labels: { a: "b" } },
  };
  const object = configMap(said);
  assert.equal(create(object), false);
  const { uid, ...metadata } = object.metadata;
  assert.deepEqual(metadata, { name: "a", namespace: "web", creationTimestamp: "2026-01-02T03:04:05Z", labels: { a: "b" } });
  assert.match(uid ?? "", /^[0-9a-f]{8}-/);
});

test("a name is generated only where there is none", () => {
  for (const [metadata, generated, name] of [
    [{ generateName: "a-" }, true, /^a-[a-z0-9]{5}$/],
    [{ generateName: "a-", name: "b" }, false, /^b$/],
    [{ generateName: "", name: "b" }, false, /^b$/],
  ] as const) {
    const object = configMap(metadata);
    assert.equal(create(object), generated);
    assert.match(object.metadata.name ?? "", name);
  }
  assert.equal(generatedNameAttempts, 8);
});

test("the namespace is that of the request, which an object may name, too, and an object without one has none", () => {
  for (const namespace of [undefined, "", "web"]) {
    const object = configMap({ name: "a", ...(namespace !== undefined && { namespace }) });
    create(object);
    assert.equal(object.metadata.namespace, "web");
  }
  assert.throws(() => create(configMap({ name: "a", namespace: "other" })), {
    message: "the namespace of the provided object does not match the namespace sent on the request",
  });
  const object = configMap({ name: "a", namespace: "other" });
  create(object, { namespaceScoped: false });
  assert.equal(object.metadata.namespace, undefined);
});

test("errors of the metadata come first, or, where it is looked at last, only if there are no others", () => {
  const wrong = { validate: () => [required("spec")] };
  const named = () => configMap({ name: "A", finalizers: ["x"] });
  const ofMetadata = ["metadata.name", "metadata.finalizers[0]"];
  assert.deepEqual(faultsOf(named(), wrong), [...ofMetadata, "spec"]);
  assert.deepEqual(faultsOf(named(), { ...wrong, metadataLast: true }), ["spec"]);
  assert.deepEqual(faultsOf(named(), { metadataLast: true }), ofMetadata);
  assert.deepEqual(faultsOf(named(), { anyFinalizer: true, validateName: () => [] }), []);
});

test("errors name these kinds by another group than their own", () => {
  const others = resourcesForTests
    .map((definition) => ({
      own: `${definition.resource}.${definition.group}`,
      group: definition.group,
      named: groupKind(definition).group,
    }))
    .filter(({ group, named }) => group !== named)
    .map(({ own, named }) => [own, named]);
  assert.deepEqual(others, [
    ["events.events.k8s.io", ""],
    ["ingresses.networking.k8s.io", "extensions"],
    ["networkpolicies.networking.k8s.io", "extensions"],
    ["podsecuritypolicies.policy", "extensions"],
  ]);
});
