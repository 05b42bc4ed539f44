import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { EndpointConditions, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { withoutUnread } from "./without-unread.ts";

const sliceWith = (...conditions: (EndpointConditions | undefined)[]): EndpointSlice => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "web", namespace: "default", labels: { a: "b" } },
  addressType: "IPv4",
  endpoints: conditions.map((one, index) => ({
    addresses: [`10.0.0.${index}`],
    ...(one !== undefined && { conditions: one }),
    hostname: `web-${index}`,
    nodeName: "n1",
    zone: "z",
    hints: { forZones: [{ name: "z" }] },
    targetRef: { kind: "Pod", name: `web-${index}`, uid: "1" },
  })),
  ports: [{ name: "", port: 80, protocol: "TCP" }],
});

test("a slice keeps everything but the Pods of its endpoints", () => {
  const slice = sliceWith({ ready: true }, undefined);
  const endpoints = slice.endpoints.map(({ targetRef: _, ...endpoint }) => endpoint);
  assert.deepEqual(withoutUnread(slice), { ...slice, endpoints });
});

test("conditions stay what they are, each combination once", () => {
  const states = [undefined, true, false];
  const all = states.flatMap((ready) =>
    states.flatMap((serving) =>
      states.map((terminating) => JSON.parse(JSON.stringify({ ready, serving, terminating })) as EndpointConditions),
    ),
  );
  const kept = (withoutUnread(sliceWith(...all, ...all)) as EndpointSlice).endpoints.map(({ conditions }) => conditions);
  assert.deepEqual(kept, [...all, ...all]);
  assert.equal(new Set(kept).size, all.length);
});

test("a Node loses its images, and others nothing, for they may be written back as a whole", () => {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } };
  const addresses = [{ type: "InternalIP", address: "10.0.0.1" }];
  assert.deepEqual(withoutUnread({ ...node, status: { addresses, images: [{ names: ["a"] }] } } as KubeObject), {
    ...node,
    status: { addresses },
  });
  assert.deepEqual(withoutUnread(node), node);
  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{}" };
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "web", annotations }, spec: { type: "ClusterIP" } };
  assert.deepEqual(withoutUnread(service), service);
});

test("a slice whose endpoints are null has none", () => {
  const slice = { ...sliceWith(), endpoints: null } as unknown as EndpointSlice;
  assert.deepEqual((withoutUnread(slice) as EndpointSlice).endpoints, []);
});
