import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podsToEvict } from "./drain.ts";

const pod = (
  name: string,
  controller: string | undefined,
  more: { phase?: string; annotations?: Record<string, string> } = {},
): Pod => ({
  metadata: {
    ...{ name, namespace: "default" },
    ...(more.annotations && { annotations: more.annotations }),
    ownerReferences:
      controller === undefined
        ? [{ apiVersion: "v1", kind: "Other", name: "o", uid: "o" }]
        : [{ apiVersion: "apps/v1", kind: controller, name: "c", uid: "c", controller: true }],
  },
  spec: { containers: [] },
  status: { phase: more.phase ?? "Running" },
});

test("only pods that a controller recreates elsewhere are evicted", () => {
  const found = [
    pod("web", "ReplicaSet"),
    pod("waiting", "StatefulSet", { phase: "Pending" }),
    pod("agent", "DaemonSet"),
    pod("static", "Node", { annotations: { "kubernetes.io/config.mirror": "x" } }),
    pod("done", undefined, { phase: "Succeeded" }),
    pod("failed", "Job", { phase: "Failed" }),
  ];
  assert.deepEqual(
    podsToEvict(found).map(({ metadata }) => metadata.name),
    ["web", "waiting"],
  );
  assert.deepEqual(podsToEvict([]), []);
});

test("the error names all pods without a controller; an owner that is not the controller does not count", () => {
  assert.throws(() => podsToEvict([pod("a", undefined), pod("web", "ReplicaSet"), pod("b", undefined)]), {
    message: /^pod default\/a has no controller.*\npod default\/b has no controller/,
    exitCode: 1,
  });
});
