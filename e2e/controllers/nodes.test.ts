import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, settings } from "../framework/kubectl.ts";

interface Node {
  metadata: { annotations?: Record<string, string> };
  spec: { podCIDR?: string; podCIDRs?: string[] };
}

test("the node was given its range of pod addresses, and an annotation says how long it may keep secrets", async () => {
  const { metadata, spec } = await getJson<Node>("node", settings.nodeName);
  assert.deepEqual(spec.podCIDRs, [settings.podCidr]);
  assert.equal(spec.podCIDR, settings.podCidr);
  assert.equal(metadata.annotations?.["node.alpha.kubernetes.io/ttl"], "0");
});
