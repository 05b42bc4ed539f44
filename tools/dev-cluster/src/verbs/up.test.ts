import assert from "node:assert/strict";
import { test } from "node:test";
import { requestedByFlags } from "./up.ts";

test("flags that are not given request nothing; --node again means no fake nodes, unless some are requested, too", () => {
  assert.deepEqual(requestedByFlags({}), {});
  assert.deepEqual(requestedByFlags({ node: true }), { withNode: true, fakeNodes: 0 });
  assert.deepEqual(requestedByFlags({ node: true, fakeNodes: 3 }), { withNode: true, fakeNodes: 3 });
  assert.deepEqual(requestedByFlags({ node: false }), { withNode: false });
  assert.deepEqual(requestedByFlags({ fakeNodes: 0 }), { fakeNodes: 0 });
});

test("a file is found from where the command was given, and an empty name is none", () => {
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "" }), { auditPolicy: "" });
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "/p.yaml" }), { auditPolicy: "/p.yaml" });
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "p.yaml" }), { auditPolicy: `${process.cwd()}/p.yaml` });
});

test("each port and each daemon's flags are requested by themselves", () => {
  assert.deepEqual(requestedByFlags({ etcdPort: 1, kubeletPort: 0 }), { ports: { etcd: 1, kubelet: 0 } });
  assert.deepEqual(requestedByFlags({ kubeletArg: ["--v=4"], kubeSchedulerArg: [] }), {
    extraArgs: { kubelet: ["--v=4"], "kube-scheduler": [] },
  });
});
