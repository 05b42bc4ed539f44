import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  replicaSets,
  replicationControllers,
  services,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aTestPod, listersOver } from "../testing/test-cluster.ts";
import { newDefaultSelector } from "./default-selector.ts";

type Stored = readonly [ResourceRef, KubeObject];
const named = (ref: ResourceRef, selector: object, namespace = "default", name = "owner"): Stored => [
  ref,
  { metadata: { name, namespace, uid: name }, spec: { selector } } as KubeObject,
];
const ofController = { matchLabels: { app: "web" } };

for (const { name, kind = "", apiVersion = "apps/v1", objects, want } of [
  { name: "a service that selects it", objects: [named(services, { app: "web" })], want: "app=web" },
  { name: "a service that selects a label that it lacks", objects: [named(services, { app: "web", x: "y" })], want: "" },
  { name: "a service of another namespace", objects: [named(services, { app: "web" }, "other")], want: "" },
  {
    name: "two services that select it",
    objects: [named(services, { app: "web" }), named(services, { tier: "front" }, "default", "second")],
    want: "app=web,tier=front",
  },
  { name: "its replica set", kind: "ReplicaSet", objects: [named(replicaSets, ofController)], want: "app=web" },
  { name: "its stateful set", kind: "StatefulSet", objects: [named(statefulSets, ofController)], want: "app=web" },
  {
    name: "its replication controller",
    kind: "ReplicationController",
    apiVersion: "v1",
    objects: [named(replicationControllers, { app: "web" })],
    want: "app=web",
  },
  { name: "a replica set that is not its controller", objects: [named(replicaSets, ofController)], want: "" },
  {
    name: "a service and its replica set, which both count",
    kind: "ReplicaSet",
    objects: [named(services, { tier: "front" }), named(replicaSets, ofController)],
    want: "app=web,tier=front",
  },
] as { name: string; kind?: string; apiVersion?: string; objects: Stored[]; want: string }[]) {
  test(`a pod is spread with the pods of ${name}: ${want || "none"}`, () => {
    const ownerReferences = kind === "" ? [] : [{ apiVersion, kind, name: "owner", uid: "owner", controller: true }];
    const pod = aTestPod("new", { labels: { app: "web", tier: "front" }, metadata: { ownerReferences } });
    const text = newDefaultSelector(listersOver(objects))(pod).toString();
    assert.equal(text.split(",").sort().join(), want);
  });
}
