import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { endpointSliceFromV1, endpointSliceToV1 } from "./conversion.ts";

const slice = (apiVersion: string, endpoint: object): KubeObject =>
  ({ apiVersion, metadata: { name: "s" }, endpoints: [{ addresses: ["10.0.0.1"], ...endpoint }] }) as unknown as KubeObject;

test("v1beta1 says node and zone in its topology", () => {
  const v1 = slice("discovery.k8s.io/v1", { nodeName: "n", zone: "z", deprecatedTopology: { rack: "r" } });
  const v1beta1 = slice("discovery.k8s.io/v1beta1", {
    nodeName: "n",
    topology: { rack: "r", "topology.kubernetes.io/zone": "z", "kubernetes.io/hostname": "n" },
  });
  assert.deepEqual(endpointSliceFromV1(v1), { ...v1beta1, apiVersion: v1.apiVersion });
  assert.deepEqual(endpointSliceToV1(v1beta1), { ...v1, apiVersion: v1beta1.apiVersion });
});

test("a hostname that is not the node stays what it is", () => {
  const v1beta1 = slice("discovery.k8s.io/v1beta1", { nodeName: "n", topology: { "kubernetes.io/hostname": "other" } });
  const v1 = slice("discovery.k8s.io/v1beta1", { nodeName: "n", deprecatedTopology: { "kubernetes.io/hostname": "other" } });
  assert.deepEqual(endpointSliceToV1(v1beta1), v1);
  assert.deepEqual(endpointSliceFromV1(v1), v1beta1);
});
