import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { newPodInfo } from "../cache/node-info.ts";
import { aTestPod } from "../testing/test-cluster.ts";
import { newDefaultBinder } from "./default-binder.ts";

test("a binding contains the pod's uid, so that a recreated pod is not bound; a failed request is a failed binding", async () => {
  const client = newFakeClient();
  client.put(pods, aTestPod("web"));
  const bind = () => newDefaultBinder(client).bind?.(new Map(), newPodInfo(aTestPod("web")), "a");
  assert.equal(await bind(), undefined);
  assert.partialDeepStrictEqual(client.writes[0]?.sent, {
    metadata: { name: "web", namespace: "default", uid: "web" },
    target: { kind: "Node", name: "a" },
  });
  client.react("create", "pods", () => {
    throw serviceUnavailable("away");
  });
  assert.equal((await bind())?.code, "Error");
});
