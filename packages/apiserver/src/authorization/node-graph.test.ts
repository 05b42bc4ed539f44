/** Read access of kubelets according to the pods on their node, on a real server with client certificates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, persistentVolumes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer } from "../testing/start-test-server.ts";
import { informedNodeGraph } from "./node.ts";

test("a node agent reaches what pods on its node refer to, directly or through claims and volumes, and nothing of others", async (t) => {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection"]);
  const post = async (path: string, object: object): Promise<void> => {
    const { code, text } = await server.request("POST", path, object);
    assert.ok(code === 201 || code === 200, `${path}: ${text}`);
  };
  const web = "/api/v1/namespaces/default";
  for (const name of ["env", "volume", "pull", "csi", "strange"]) await post(`${web}/secrets`, { metadata: { name } });
  for (const name of ["settings", "strange"]) await post(`${web}/configmaps`, { metadata: { name } });
  for (const name of ["robot", "strange"]) await post(`${web}/serviceaccounts`, { metadata: { name } });
  for (const name of ["mine", "strange"]) {
    await post("/api/v1/persistentvolumes", {
      metadata: { name },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        claimRef: { namespace: "default", name },
        csi: { driver: "csi.test", volumeHandle: name, nodePublishSecretRef: { name: "csi", namespace: "default" } },
      },
    });
    await post(`${web}/persistentvolumeclaims`, {
      metadata: { name },
      spec: { accessModes: ["ReadWriteOnce"], volumeName: name, resources: { requests: { storage: "1Gi" } } },
    });
  }
  const attachments = "/apis/storage.k8s.io/v1/volumeattachments";
  for (const nodeName of ["n1", "n2"]) {
    await post(attachments, {
      metadata: { name: `to-${nodeName}` },
      spec: { attacher: "csi.test", nodeName, source: { persistentVolumeName: "mine" } },
    });
  }
  await post(`${web}/pods`, {
    metadata: { name: "web" },
    spec: {
      nodeName: "n1",
      serviceAccountName: "robot",
      imagePullSecrets: [{ name: "pull" }],
      containers: [
        {
          name: "main",
          image: "registry.test/web:1",
          envFrom: [{ secretRef: { name: "env" } }, { configMapRef: { name: "settings" } }],
        },
      ],
      volumes: [
        { name: "s", secret: { secretName: "volume" } },
        { name: "c", persistentVolumeClaim: { claimName: "mine" } },
      ],
    },
  });
  const agentOf = async (node: string) => {
    const http = newHttp(server.url, server.ca, await server.clientCertificate(`system:node:${node}`, ["system:nodes"]));
    t.after(() => http.close());
    return async (method: string, path: string, body?: object): Promise<boolean> => {
      const patch = method === "PATCH" ? { "content-type": "application/merge-patch+json" } : {};
      const { code, body: answer } = await http.request(method, path, body, patch);
      assert.notEqual(code, 401);
      return !(code === 403 && /^[a-z./0-9"-]+( "[^"]*")? is forbidden: User "system:node/.test(answer.message));
    };
  };
  const [own, other] = [await agentOf("n1"), await agentOf("n2")];
  await waitFor(() => own("GET", `${web}/secrets/volume`), { what: "the pod in the graph" });

  const token = { spec: { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "web" } } };
  const csiNodes = "/apis/storage.k8s.io/v1/csinodes";
  const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const byName = (name: string): string => `?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
  /** The booleans are the expected access of the pod's node and of the other node. */
  const table: [string, string, object | undefined, boolean, boolean][] = [
    ["GET", `${web}/secrets/env`, undefined, true, false],
    ["GET", `${web}/secrets/volume`, undefined, true, false],
    ["GET", `${web}/secrets/pull`, undefined, true, false],
    ["GET", `${web}/secrets/csi`, undefined, true, false],
    ["GET", `${web}/secrets/strange`, undefined, false, false],
    ["GET", `${web}/secrets`, undefined, false, false],
    ["GET", `${web}/secrets${byName("env")}`, undefined, true, false],
    ["GET", `${web}/secrets${byName("strange")}`, undefined, false, false],
    ["GET", "/api/v1/secrets", undefined, false, false],
    ["GET", `/api/v1/secrets${byName("env")}`, undefined, false, false],
    ["PATCH", `${web}/secrets/env`, {}, false, false],
    ["DELETE", `${web}/secrets/env`, undefined, false, false],
    ["GET", `${web}/configmaps/settings`, undefined, true, false],
    ["GET", `${web}/configmaps/strange`, undefined, false, false],
    ["GET", `${web}/persistentvolumeclaims/mine`, undefined, true, false],
    ["GET", `${web}/persistentvolumeclaims/strange`, undefined, false, false],
    ["PATCH", `${web}/persistentvolumeclaims/mine`, {}, false, false],
    ["GET", "/api/v1/persistentvolumes/mine", undefined, true, false],
    ["GET", "/api/v1/persistentvolumes/strange", undefined, false, false],
    ["GET", "/api/v1/persistentvolumes", undefined, false, false],
    ["GET", `${attachments}/to-n1`, undefined, true, false],
    ["GET", `${attachments}/to-n2`, undefined, false, true],
    ["GET", attachments, undefined, false, false],
    ["POST", `${web}/serviceaccounts/robot/token`, token, true, false],
    ["POST", `${web}/serviceaccounts/strange/token`, token, false, false],
    ["GET", `${web}/serviceaccounts/robot`, undefined, false, false],
    ["GET", `${leases}/n1`, undefined, true, false],
    ["GET", `${leases}/n2`, undefined, false, true],
    ["PATCH", `${leases}/n1`, {}, true, false],
    ["GET", leases, undefined, false, false],
    ["GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1", undefined, false, false],
    ["GET", `${csiNodes}/n1`, undefined, true, false],
    ["GET", `${csiNodes}/n2`, undefined, false, true],
    ["GET", csiNodes, undefined, false, false],
    ["GET", "/api/v1/pods", undefined, true, true],
    ["GET", "/api/v1/nodes", undefined, true, true],
    ["GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", undefined, false, false],
  ];
  const got = await Promise.all(
    table.map(async ([method, path, body]) => [
      method,
      path,
      body,
      await own(method, path, body),
      await other(method, path, body),
    ]),
  );
  assert.deepEqual(got, table);

  await server.request("DELETE", `${web}/pods/web?gracePeriodSeconds=0`);
  await waitFor(async () => !(await own("GET", `${web}/secrets/volume`)), { what: "the end of the pod's rights" });
  assert.equal(await own("GET", "/api/v1/persistentvolumes/mine"), false);
});

test("a secret that several volumes name belongs to the nodes of each of them, until the pod or the claim is deleted", async (t) => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const end = new AbortController();
  t.after(() => end.abort());
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const graph = informedNodeGraph(informers, { configSources: false });
  const volume = (name: string, claimRef?: object) => ({
    metadata: { name },
    spec: {
      ...(claimRef && { claimRef }),
      csi: { driver: "d", volumeHandle: name, nodePublishSecretRef: { name: "s", namespace: "web" } },
    },
  });
  const pod = (name: string, nodeName: string, claimName: string) => ({
    metadata: { name, namespace: "web" },
    spec: { nodeName, containers: [], volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] },
  });
  client.put(persistentVolumes, volume("free"), ...["a", "b"].map((name) => volume(name, { namespace: "web", name })));
  client.put(persistentVolumes, volume("nowhere", { name: "c" }));
  client.put(pods, pod("p1", "n1", "a"), pod("p2", "n2", "b"), pod("p3", "n3", "c"));
  informers.start(end.signal);
  await waitFor(() => graph.synced, { what: "the graph" });
  const reached = () => ["n1", "n2", "n3", "n4"].filter((node) => graph.refersTo(node, "secrets", "web", "s")).join();
  assert.equal(reached(), "n1,n2");
  client.remove(pods, "web/p2");
  await waitFor(() => reached() === "n1", { what: "the pod to be forgotten" });
  client.put(persistentVolumes, volume("a"));
  await waitFor(() => reached() === "", { what: "the claim to be forgotten" });
});

test("the graph is known when the last kind of its objects is", async (t) => {
  const client = newFakeClient();
  client.react("list", "volumeattachments", () => new Promise(() => {}));
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const graph = informedNodeGraph(informers, { configSources: true });
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  const others = [pods, persistentVolumes, nodes].map((ref) => informers.for(ref));
  await waitFor(() => others.every(({ synced }) => synced), { what: "the others" });
  assert.equal(graph.synced, false);
});

test("a node reads the config map of its own configuration, none of that name elsewhere, and only where that is on", async (t) => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const configMap = { namespace: "kube-system", name: "settings", kubeletConfigKey: "kubelet" };
  client.put(nodes, { metadata: { name: "n1" }, spec: { configSource: { configMap } } }, { metadata: { name: "n2" } } as Node);
  const end = new AbortController();
  t.after(() => end.abort());
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const graph = informedNodeGraph(informers, { configSources: true });
  const without = informedNodeGraph(newInformerFactory(client, { log: discardLogger, clock }), { configSources: false });
  informers.start(end.signal);
  await waitFor(() => graph.synced, { what: "the graph" });
  const reads = (node: string, kind: "configmaps" | "secrets", namespace: string, from = graph) =>
    from.refersTo(node, kind, namespace, "settings");
  assert.equal(reads("n1", "configmaps", "kube-system"), true);
  assert.deepEqual(
    [
      reads("n1", "configmaps", "default"),
      reads("n1", "secrets", "kube-system"),
      reads("n2", "configmaps", "kube-system"),
      reads("n1", "configmaps", "kube-system", without),
    ],
    [false, false, false, false],
  );
});
