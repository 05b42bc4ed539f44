/** What the strategies of each resource say of its writes. Source: the strategies below pkg/registry, release 1.23 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { contextOf, resourcesForTests } from "../testing/kind-rules.ts";
import { prepareUpdate } from "../testing/run-strategy.ts";
import type { ResourceDefinition } from "./generic/resource.ts";

const nameOf = ({ group, resource }: ResourceDefinition): string => (group === "" ? resource : `${resource}.${group}`);
const stored = resourcesForTests.filter(({ strategy }) => strategy !== undefined);
const those = (is: (definition: ResourceDefinition) => unknown): string[] => stored.filter(is).map(nameOf).sort();
const each = <T>(value: (definition: ResourceDefinition) => T | undefined): Record<string, T> =>
  Object.fromEntries(
    stored.flatMap((definition): [string, T][] => {
      const found = value(definition);
      return found === undefined ? [] : [[nameOf(definition), found]];
    }),
  );
const lines = (text: string): string[] => text.trim().split(/\s+/).sort();

test("a PUT creates objects of these resources alone", () => {
  const want = `
    endpoints events limitranges services events.events.k8s.io leases.coordination.k8s.io runtimeclasses.node.k8s.io
    clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io
    rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io`;
  assert.deepEqual(
    those(({ strategy }) => strategy?.allowCreateOnUpdate),
    lines(want),
  );
});

test("an update has to name the version that it changes of these resources alone", () => {
  const want = `
    apiservices.apiregistration.k8s.io csidrivers.storage.k8s.io csinodes.storage.k8s.io csistoragecapacities.storage.k8s.io
    customresourcedefinitions.apiextensions.k8s.io leases.coordination.k8s.io poddisruptionbudgets.policy
    mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io
    runtimeclasses.node.k8s.io storageversions.internal.apiserver.k8s.io volumeattachments.storage.k8s.io`;
  assert.deepEqual(
    those(({ strategy }) => strategy?.allowUnconditionalUpdate === false),
    lines(want),
  );
});

test("finalizers without a domain are taken of these resources alone", () => {
  const want = `
    apiservices.apiregistration.k8s.io customresourcedefinitions.apiextensions.k8s.io events events.events.k8s.io
    poddisruptionbudgets.policy mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io
    storageversions.internal.apiserver.k8s.io`;
  assert.deepEqual(
    those(({ strategy }) => strategy?.anyFinalizer),
    lines(want),
  );
});

test("metadata is looked at last of these resources alone", () => {
  assert.deepEqual(
    those(({ strategy }) => strategy?.metadataLast),
    ["events", "events.events.k8s.io", "poddisruptionbudgets.policy"],
  );
});

test("a deletion answers with the object of these resources alone", () => {
  const want = `
    pods podtemplates persistentvolumeclaims persistentvolumes resourcequotas serviceaccounts services
    csidrivers.storage.k8s.io csinodes.storage.k8s.io storageclasses.storage.k8s.io volumeattachments.storage.k8s.io
    podsecuritypolicies.policy`;
  assert.deepEqual(
    those(({ returnDeletedObject }) => returnDeletedObject),
    lines(want),
  );
});

test("objects whose specs are versioned begin with generation 1", () => {
  const want = `
    podtemplates replicationcontrollers daemonsets.apps deployments.apps replicasets.apps statefulsets.apps cronjobs.batch jobs.batch
    customresourcedefinitions.apiextensions.k8s.io endpointslices.discovery.k8s.io poddisruptionbudgets.policy
    ingressclasses.networking.k8s.io ingresses.networking.k8s.io networkpolicies.networking.k8s.io
    mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io
    flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
    priorityclasses.scheduling.k8s.io`;
  const begins = (definition: ResourceDefinition): boolean => {
    const next: KubeObject & { spec: object } = { metadata: { name: "x" }, spec: {} };
    definition.strategy?.prepareForCreate?.(next, contextOf(definition, definition.hub));
    return next.metadata.generation === 1;
  };
  assert.deepEqual(those(begins), lines(want));
});

test("these resources are stored in another version than the one that strategies see", () => {
  assert.deepEqual(
    each(({ storage }) => storage && `${storage.group}/${storage.version}`),
    {
      "cronjobs.batch": "batch/v1beta1",
      "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/v1beta1",
      "endpointslices.discovery.k8s.io": "discovery.k8s.io/v1beta1",
      "events.events.k8s.io": "/v1",
      "flowschemas.flowcontrol.apiserver.k8s.io": "flowcontrol.apiserver.k8s.io/v1beta1",
      "horizontalpodautoscalers.autoscaling": "autoscaling/v1",
      "poddisruptionbudgets.policy": "policy/v1beta1",
      "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "flowcontrol.apiserver.k8s.io/v1beta1",
    },
  );
});

test("what becomes of the dependents of a deleted object where nobody says it", () => {
  const policyIn = (version: string) =>
    each((definition) => {
      const policy = definition.strategy?.defaultGarbageCollection;
      return typeof policy === "function" ? policy(contextOf(definition, version)) : policy;
    });
  const always = {
    events: "Unsupported",
    "events.events.k8s.io": "Unsupported",
    "jobs.batch": "Orphan",
    namespaces: "Background",
    pods: "Background",
    replicationcontrollers: "Orphan",
  };
  assert.deepEqual(policyIn("v1"), { ...always, "cronjobs.batch": "Background" });
  assert.deepEqual(policyIn("v1beta1"), { ...always, "cronjobs.batch": "Orphan" });
});

test("an update owns no field of the status, and one of the status neither spec nor, of some kinds, metadata", () => {
  const spec = ["spec"];
  const metadata = ["metadata", "spec"];
  const others: Readonly<Record<string, string[]>> = {
    "apiservices.apiregistration.k8s.io": metadata,
    "customresourcedefinitions.apiextensions.k8s.io": metadata,
    "deployments.apps": ["metadata.labels", "spec"],
    "flowschemas.flowcontrol.apiserver.k8s.io": metadata,
    pods: ["metadata.deletionTimestamp", "metadata.ownerReferences", "spec"],
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": metadata,
    "storageversions.internal.apiserver.k8s.io": metadata,
    "volumeattachments.storage.k8s.io": metadata,
  };
  for (const definition of stored) {
    const name = nameOf(definition);
    const hasStatus = definition.statusStrategy !== undefined;
    assert.deepEqual(definition.strategy?.resetFields, hasStatus ? ["status"] : undefined, name);
    assert.deepEqual(definition.statusStrategy?.resetFields?.toSorted(), hasStatus ? (others[name] ?? spec) : undefined, name);
  }
});

test("an update of the status changes the metadata of most kinds, but not of these", () => {
  const old = { name: "x", uid: "u", resourceVersion: "1" };
  const all = (value: string) => ({
    labels: { a: value },
    annotations: { a: value },
    finalizers: [`example.com/${value}`],
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: value, uid: value }],
  });
  const everything = ["labels", "annotations", "finalizers", "ownerReferences"];
  const changedOf = (definition: ResourceDefinition): string[] => {
    const next = { metadata: { ...old, ...all("new") }, spec: {}, status: {} };
    const current = { metadata: { ...old, ...all("old") }, spec: {}, status: {} };
    prepareUpdate(definition.statusStrategy!, next, current, contextOf(definition, definition.hub));
    // A template generation may be beside the annotations.
    return everything.filter((field) => JSON.stringify(Object(next.metadata)[field]).includes("new"));
  };
  const changed = each((definition) => (definition.statusStrategy ? changedOf(definition) : undefined));
  const less = Object.fromEntries(Object.entries(changed).filter(([, fields]) => fields.length < everything.length));
  assert.deepEqual(less, {
    "apiservices.apiregistration.k8s.io": [],
    "deployments.apps": ["annotations", "finalizers", "ownerReferences"],
    "flowschemas.flowcontrol.apiserver.k8s.io": [],
    pods: ["labels", "annotations", "finalizers"],
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": [],
    "storageversions.internal.apiserver.k8s.io": [],
    "volumeattachments.storage.k8s.io": [],
  });
});

test("the fields that can be selected by, with their values", () => {
  const regarding = { kind: "K", namespace: "n", name: "m", uid: "u", apiVersion: "v", resourceVersion: "2", fieldPath: "f" };
  const event = { involvedObject: regarding, reason: "r", reportingComponent: "c", source: { component: "s" }, type: "Normal" };
  const selected = (resource: string, object: object) =>
    stored.find((definition) => nameOf(definition) === resource)?.selectableFields?.({ metadata: {}, ...object });
  assert.deepEqual(selected("jobs.batch", { status: { succeeded: 2 } }), { "status.successful": "2" });
  assert.deepEqual(selected("jobs.batch", {}), { "status.successful": "0" });
  assert.deepEqual(selected("certificatesigningrequests.certificates.k8s.io", { spec: { signerName: "a.b/c" } }), {
    "spec.signerName": "a.b/c",
  });
  assert.deepEqual(selected("events.events.k8s.io", event), {
    ...Object.fromEntries(Object.entries(regarding).map(([field, value]) => [`regarding.${field}`, value])),
    reason: "r",
    reportingController: "c",
    type: "Normal",
  });
  const job = stored.find((definition) => nameOf(definition) === "jobs.batch");
  assert.equal(job?.unknownFieldText?.("a.b"), 'field label "a.b" not supported for batchv1.Job');
});

test("replicas are scaled below spec and status, and a missing scale is named so", () => {
  const scales = each(({ scale }) => scale && [scale.version, scale.specReplicas, scale.statusReplicas, scale.unknownAs]);
  const paths = ["autoscaling/v1", ".spec.replicas", ".status.replicas"];
  assert.deepEqual(scales, {
    "deployments.apps": [...paths, { group: "apps", resource: "deployments/scale" }],
    "replicasets.apps": [...paths, { group: "apps", resource: "replicasets/scale" }],
    replicationcontrollers: [...paths, { group: "autoscaling", resource: "replicationcontrollers/scale" }],
    "statefulsets.apps": [...paths, undefined],
  });
  for (const [selector, text] of [
    [{ matchLabels: { b: "2", a: "1" } }, "a=1,b=2"],
    [{}, ""],
    [{ matchExpressions: [{ key: "a", operator: "Like" }] }, ""],
  ] as const) {
    const object = { metadata: {}, spec: { selector } } as KubeObject;
    const found = each(({ group, scale }) => (group === "apps" ? scale?.selector(object) : undefined));
    assert.deepEqual(found, { "deployments.apps": text, "replicasets.apps": text, "statefulsets.apps": text });
  }
  const controller = stored.find(({ resource }) => resource === "replicationcontrollers");
  for (const [selector, text] of [
    [{ b: "2", a: "1" }, "a=1,b=2"],
    [{}, ""],
    [undefined, ""],
  ] as const)
    assert.equal(controller?.scale?.selector({ metadata: {}, spec: { selector } } as KubeObject), text);
});
