/** Fields by which objects of the core group are selected. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { resourcesForTests } from "../../testing/kind-rules.ts";

const noEvent = {
  ...{ "involvedObject.kind": "", "involvedObject.namespace": "", "involvedObject.name": "", "involvedObject.uid": "" },
  ...{ "involvedObject.apiVersion": "", "involvedObject.resourceVersion": "", "involvedObject.fieldPath": "" },
  ...{ reason: "", reportingComponent: "", source: "", type: "" },
};
const noPod = {
  ...{ "spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "" },
  ...{ "status.phase": "", "status.podIP": "", "status.podIPs": "", "status.nominatedNodeName": "" },
};

for (const { resource, object, want } of [
  { resource: "pods", object: {}, want: noPod },
  {
    resource: "pods",
    object: {
      spec: { nodeName: "n", restartPolicy: "Never", schedulerName: "s", serviceAccountName: "a" },
      status: { phase: "Running", podIP: "10.0.0.9", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }], nominatedNodeName: "m" },
    },
    want: {
      ...{ "spec.nodeName": "n", "spec.restartPolicy": "Never", "spec.schedulerName": "s", "spec.serviceAccountName": "a" },
      ...{ "status.phase": "Running", "status.podIP": "10.0.0.1", "status.podIPs": "", "status.nominatedNodeName": "m" },
    },
  },
  { resource: "pods", object: { status: { podIP: "10.0.0.9" } }, want: { ...noPod, "status.podIP": "10.0.0.9" } },
  { resource: "events", object: {}, want: noEvent },
  {
    resource: "events",
    object: {
      involvedObject: {
        ...{ kind: "k", namespace: "n", name: "m", uid: "u", apiVersion: "v", resourceVersion: "r", fieldPath: "f" },
      },
      ...{ reason: "r", reportingComponent: "new", source: { component: "old" }, type: "Normal" },
    },
    want: {
      ...{ "involvedObject.kind": "k", "involvedObject.namespace": "n", "involvedObject.name": "m", "involvedObject.uid": "u" },
      ...{ "involvedObject.apiVersion": "v", "involvedObject.resourceVersion": "r", "involvedObject.fieldPath": "f" },
      ...{ reason: "r", reportingComponent: "new", source: "old", type: "Normal" },
    },
  },
  {
    resource: "events",
    object: { reportingComponent: "new", source: { host: "h" } },
    want: { ...noEvent, reportingComponent: "new", source: "new" },
  },
  { resource: "namespaces", object: { status: { phase: "Active" } }, want: { "status.phase": "Active" } },
  { resource: "nodes", object: {}, want: { "spec.unschedulable": "false" } },
  { resource: "nodes", object: { spec: { unschedulable: true } }, want: { "spec.unschedulable": "true" } },
  { resource: "secrets", object: { type: "t" }, want: { type: "t" } },
  { resource: "replicationcontrollers", object: {}, want: { "status.replicas": "0" } },
  { resource: "replicationcontrollers", object: { status: { replicas: 2 } }, want: { "status.replicas": "2" } },
]) {
  test(`${resource} are selected by these fields: ${JSON.stringify(object).slice(0, 60)}`, () => {
    const definition = resourcesForTests.find((one) => one.group === "" && one.resource === resource);
    const made = { metadata: { name: "x" }, ...object } as KubeObject;
    assert.deepEqual(definition?.selectableFields?.(made), want);
  });
}
