import assert from "node:assert/strict";
import { test } from "node:test";
import { qosClass } from "./qos.ts";

const container = (requests?: Record<string, string>, limits?: Record<string, string>) => ({
  name: "c",
  resources: { ...(requests && { requests }), ...(limits && { limits }) },
});
const both = { cpu: "1", memory: "1Gi" };

for (const { name, containers, initContainers, want } of [
  { name: "asks for nothing", containers: [container()], want: "BestEffort" },
  { name: "asks for zero", containers: [container({ cpu: "0" })], want: "BestEffort" },
  { name: "asks for something", containers: [container({ cpu: "1" })], want: "Burstable" },
  { name: "limits what it asks for", containers: [container(both, both)], want: "Guaranteed" },
  {
    name: "limits the same in other words",
    containers: [container({ cpu: "1000m", memory: "1024Mi" }, both)],
    want: "Guaranteed",
  },
  { name: "may use more than it asks for", containers: [container({ cpu: "500m", memory: "1Gi" }, both)], want: "Burstable" },
  { name: "limits both and requests one of them", containers: [container({ cpu: "1" }, both)], want: "Burstable" },
  { name: "requests more than it limits", containers: [container(both, { cpu: "1", memory: "2Gi" })], want: "Burstable" },
  { name: "limits only cpu", containers: [container({ cpu: "1" }, { cpu: "1" })], want: "Burstable" },
  { name: "has one container without limits", containers: [container(both, both), container()], want: "Burstable" },
  {
    name: "has an init container without limits",
    containers: [container(both, both)],
    initContainers: [container()],
    want: "Burstable",
  },
  { name: "limits what it does not request", containers: [container(undefined, both)], want: "Burstable" },
  {
    name: "limits both in one of two containers",
    containers: [container(both, both), container(both, { cpu: "1" })],
    want: "Burstable",
  },
  {
    name: "limits both in each container",
    containers: [container(both, both), container({ cpu: "2", memory: "1" }, { cpu: "2", memory: "1" })],
    want: "Guaranteed",
  },
  {
    name: "has an init container that alone asks",
    containers: [container()],
    initContainers: [container({ memory: "1" })],
    want: "Burstable",
  },
  { name: "has limits of zero", containers: [container(undefined, { cpu: "0", memory: "0" })], want: "BestEffort" },
  { name: "asks only for ephemeral storage", containers: [container({ "ephemeral-storage": "1Gi" })], want: "BestEffort" },
]) {
  test(`a pod that ${name} is ${want}`, () => {
    assert.equal(qosClass({ spec: { containers, ...(initContainers && { initContainers }) } }), want);
  });
}
