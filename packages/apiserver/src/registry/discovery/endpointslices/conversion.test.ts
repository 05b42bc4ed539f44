import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { endpointSliceFromV1, endpointSliceToV1 } from "./conversion.ts";

/** A slice with the endpoint twice. */
const slice = (apiVersion: string, endpoint: object): KubeObject => {
  const endpoints = ["10.0.0.1", "10.0.0.2"].map((address) => ({ addresses: [address], ...endpoint }));
  return { apiVersion, metadata: { name: "s" }, endpoints } as unknown as KubeObject;
};

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

for (const { name, v1, v1beta1 } of [
  { name: "nothing of where it is", v1: {}, v1beta1: {} },
  {
    name: "a node alone",
    v1: { nodeName: "n" },
    v1beta1: { nodeName: "n", topology: { "kubernetes.io/hostname": "n" } },
  },
  { name: "a zone alone", v1: { zone: "z" }, v1beta1: { topology: { "topology.kubernetes.io/zone": "z" } } },
  {
    name: "a hostname without a node",
    v1: { deprecatedTopology: { "kubernetes.io/hostname": "n" } },
    v1beta1: { topology: { "kubernetes.io/hostname": "n" } },
  },
  { name: "other keys alone", v1: { deprecatedTopology: { rack: "r" } }, v1beta1: { topology: { rack: "r" } } },
]) {
  test(`endpoints that say ${name} are the same in both versions`, () => {
    assert.deepEqual(endpointSliceToV1(slice("v", v1beta1)), slice("v", v1));
    assert.deepEqual(endpointSliceFromV1(slice("v", v1)), slice("v", v1beta1));
  });
}

test("a slice without endpoints has none in either version", () => {
  const none = { metadata: { name: "s" } };
  assert.deepEqual([endpointSliceToV1(none), endpointSliceFromV1(none)], [none, none]);
});
