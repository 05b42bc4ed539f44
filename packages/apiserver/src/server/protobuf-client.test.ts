/** The client library with protobuf, the default of the other daemons, against a real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { canonical } from "@coxswain/apimachinery/objects/codec/json";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { isBadRequest, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TokenRequest } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  configMaps,
  deployments,
  events,
  leases,
  nodes,
  pods,
  serviceAccounts,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
let client: Client;

before(async () => {
  server = await startTestServer(undefined);
  const { url: host, ca, adminToken: token } = server;
  client = newClient({ host, ca, token, qps: -1, contentType: protobufMediaType });
});
after(async () => {
  client.close();
  await server.stop();
});

const deployment = {
  metadata: { name: "web", namespace: "default" },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
  },
};

test("create, get, list and watch in protobuf return the objects of JSON, in canonical form", async () => {
  const made = await client.create(deployments, deployment);
  const inJson = canonical(await server.client.get(deployments, { namespace: "default", name: "web" }));
  assert.deepEqual(made, inJson);
  assert.deepEqual(await client.get(deployments, { namespace: "default", name: "web" }), inJson);
  const list = await client.list(deployments, { namespace: "default" });
  assert.deepEqual(list, canonical(await server.client.list(deployments, { namespace: "default" })));
  const stop = new AbortController();
  for await (const event of client.watch(deployments, {}, { signal: stop.signal, resourceVersion: "0" })) {
    assert.deepEqual(event, { type: "ADDED", object: inJson });
    break;
  }
});

test("creates, status updates and deletions in protobuf store the same object as in JSON", async () => {
  const target = { namespace: "default", name: "both" };
  const stored = async (writer: Client): Promise<object> => {
    await writer.create(deployments, { ...deployment, metadata: target });
    const status = { replicas: 2, observedGeneration: 1, conditions: [{ type: "Available", status: "True" }] };
    const found = await writer.get(deployments, target);
    await writer.update(deployments, { ...found, status } as KubeObject, { subresource: "status" });
    const { metadata, ...rest } = canonical(await server.client.get(deployments, target)) as KubeObject;
    await writer.delete(deployments, target, { preconditions: { uid: metadata.uid as string }, propagationPolicy: "Background" });
    const { uid: _, resourceVersion: __, creationTimestamp: ___, managedFields: ____, ...kept } = metadata;
    return { ...rest, metadata: kept };
  };
  assert.deepEqual(await stored(client), await stored(server.client));
});

test("a kubelet's writes in protobuf are stored: node, lease, mirror pods, events, tokens", async () => {
  const [namespace, name] = ["default", "n1"];
  const node = await client.create(nodes, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { a: "b" } },
    spec: { taints: [{ key: "k", effect: "NoSchedule" }] },
    status: { capacity: { cpu: "2", memory: "1000Ki" }, images: [{ names: ["i"], sizeBytes: 2 ** 33 }] },
  });
  const { status } = await server.client.get<Node>(nodes, { name });
  hasFields(status, {
    capacity: { cpu: "2", memory: "1000Ki" },
    images: [{ names: ["i"], sizeBytes: 2 ** 33 }],
  });

  const renewTime = "2022-01-01T00:00:00.123456Z";
  const lease = { metadata: { name, namespace }, spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime } };
  const held = await client.create<Lease>(leases, lease);
  await client.update<Lease>(leases, { ...held, spec: { ...held.spec, renewTime: renewTime.replace("00:00:00", "00:00:10") } });
  const { spec } = await server.client.get<Lease>(leases, { namespace, name });
  assert.equal(spec?.renewTime, "2022-01-01T00:00:10.123456Z");

  const mirror = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-n1", namespace, annotations: { "kubernetes.io/config.mirror": "h" }, creationTimestamp: null },
    spec: {
      nodeName: name,
      containers: [{ name: "c", image: "i", resources: { requests: { cpu: "100m" } } }],
      hostNetwork: true,
    },
  };
  await client.create<Pod>(pods, mirror, { namespace });
  assert.equal((await server.client.get<Pod>(pods, { namespace, name: "web-n1" })).spec.nodeName, node.metadata.name);
  await client.delete(pods, { namespace, name: "web-n1" }, { gracePeriodSeconds: 0 });
  await assert.rejects(client.get(pods, { namespace, name: "web-n1" }), isNotFound);

  const event = { metadata: { name: "e", namespace }, involvedObject: { kind: "Node", name, namespace }, reason: "R", count: 2 };
  await client.create(events, event);
  assert.partialDeepStrictEqual(await server.client.get(events, { namespace, name: "e" }), { reason: "R", count: 2 });

  await server.client.create(serviceAccounts, { metadata: { name: "a", namespace } });
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: {},
    spec: { audiences: ["x"], expirationSeconds: 700 },
  };
  const token = await client.create<TokenRequest>(serviceAccounts, request, {
    namespace,
    name: "a",
    subresource: "token",
  });
  assert.match(token.status?.token ?? "", /^[^.]+\.[^.]+\.[^.]+$/);
});

test("a refusal is a Status, also when it came as protobuf; a refused watch too", async () => {
  await assert.rejects(client.get(configMaps, { namespace: "default", name: "none" }), isNotFound);
  const { signal } = new AbortController();
  const watch = client.watch(configMaps, {}, { signal, labelSelector: "a in" });
  await assert.rejects(async () => {
    for await (const _ of watch) break;
  }, isBadRequest);
});

test("a deletion, a patch and a subresource are answered too", async () => {
  const target = { namespace: "default", name: "web" };
  const patched = await client.patch(deployments, target, { type: "merge", body: { spec: { replicas: 3 } } });
  assert.equal((patched as { spec?: { replicas?: number } }).spec?.replicas, 3);
  const scale = await client.get(deployments, { ...target, name: "web", subresource: "scale" });
  assert.equal(scale.kind, "Scale");
  await client.delete(deployments, target);
  await assert.rejects(client.get(deployments, target), isNotFound);
});

test("kinds that have no protobuf and metadata alone go in JSON", async () => {
  await client.create(
    {
      group: "apiextensions.k8s.io",
      version: "v1",
      resource: "customresourcedefinitions",
      kind: "CustomResourceDefinition",
      namespaced: false,
    },
    {
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "things", kind: "Thing" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    } as KubeObject,
  );
  const things: ResourceRef = { group: "example.com", version: "v1", resource: "things", kind: "Thing", namespaced: true };
  const thing = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "a", namespace: "default" }, spec: { x: 1 } };
  const made = await waitFor(() => client.create(things, thing as KubeObject).catch(() => undefined), { what: "the kind" });
  assert.deepEqual((made as { spec?: unknown }).spec, { x: 1 });
  await client.create(configMaps, { metadata: { name: "m", namespace: "default" }, data: { a: "b" } } as KubeObject);
  const { items } = await client.list(configMaps, { namespace: "default" }, { metadataOnly: true });
  assert.ok(items.every((item) => !("data" in item) && item.kind !== "ConfigMap"));
});
