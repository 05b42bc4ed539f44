import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, ["--enable-admission-plugins=NodeRestriction"]);
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
});
after(() => server.stop());

const pods = "/api/v1/namespaces/default/pods";
function aPod(name: string, spec: object = {}): object {
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [{ name: "c", image: "busybox" }], ...spec } };
}

test("a create in a missing namespace is refused", async () => {
  const { code, body } = await server.request("POST", "/api/v1/namespaces/nowhere/configmaps", { metadata: { name: "a" } });
  assert.equal(code, 404);
  assert.equal(body.message, 'namespaces "nowhere" not found');
});

test("a create in a terminating namespace is refused", async () => {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "leaving" } });
  await server.request("DELETE", "/api/v1/namespaces/leaving");
  const answer = await waitFor(
    async () => {
      const { code, body } = await server.request("POST", "/api/v1/namespaces/leaving/configmaps", {
        metadata: { generateName: "a-" },
      });
      return code === 403 ? body : undefined;
    },
    { what: "the namespace to be seen as terminating" },
  );
  assert.match(String(answer.message), /unable to create new content in namespace leaving because it is being terminated/);
  assert.deepEqual(answer.details.causes, [
    { reason: "NamespaceTerminating", message: "namespace leaving is being terminated", field: "metadata.namespace" },
  ]);
});

test("the system's namespaces cannot be deleted", async () => {
  for (const name of ["default", "kube-system", "kube-public"]) {
    const { code, body } = await server.request("DELETE", `/api/v1/namespaces/${name}`);
    assert.equal(code, 403);
    assert.equal(body.message, `namespaces "${name}" is forbidden: this namespace may not be deleted`);
  }
});

test("a pod gets a service account, its token, tolerations and a priority", async () => {
  const { code, body } = await server.request("POST", pods, aPod("full"));
  assert.equal(code, 201);
  assert.equal(body.spec.serviceAccountName, "default");
  const [volume] = body.spec.volumes;
  assert.match(volume.name, /^kube-api-access-[a-z0-9]{5}$/);
  assert.deepEqual(volume.projected.sources[0], { serviceAccountToken: { expirationSeconds: 3607, path: "token" } });
  assert.deepEqual(body.spec.containers[0].volumeMounts, [
    { name: volume.name, readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
  ]);
  assert.deepEqual(
    body.spec.tolerations.map(({ key }: { key: string }) => key),
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"],
  );
  assert.equal(body.spec.priority, 0);
  assert.equal(body.spec.preemptionPolicy, "PreemptLowerPriority");
});

test("a pod of a missing service account is refused", async () => {
  const { code, body } = await server.request("POST", pods, aPod("lost", { serviceAccountName: "ghost" }));
  assert.equal(code, 403);
  assert.equal(
    body.message,
    'pods "lost" is forbidden: error looking up service account default/ghost: serviceaccount "ghost" not found',
  );
});

test("priority comes from the class and from nowhere else", async () => {
  const critical = await server.request("POST", pods, aPod("critical", { priorityClassName: "system-node-critical" }));
  assert.equal(critical.body.spec.priority, 2_000_001_000);
  const unknown = await server.request("POST", pods, aPod("x", { priorityClassName: "none" }));
  assert.equal(unknown.body.message, 'pods "x" is forbidden: no PriorityClass with name none was found');
  const own = await server.request("POST", pods, aPod("x", { priority: 7 }));
  assert.match(own.body.message, /the integer value of priority \(7\) must not be provided in pod spec/);
});

test("a node starts with the not-ready taint, and its agent cannot touch other nodes", async (t) => {
  const http = newHttp(server.url, server.ca, await server.clientCertificate("system:node:n1", ["system:nodes"]));
  t.after(() => http.close());
  const node = (name: string, labels = {}): object => ({ apiVersion: "v1", kind: "Node", metadata: { name, labels } });
  const created = await http.request("POST", "/api/v1/nodes", node("n1"));
  assert.equal(created.code, 201);
  assert.deepEqual(created.body.spec.taints, [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }]);
  const other = await http.request("POST", "/api/v1/nodes", node("n2"));
  assert.equal(other.code, 403);
  assert.match(other.body.message, /node "n1" is not allowed to modify node "n2"/);
  const label = await http.request(
    "PATCH",
    "/api/v1/nodes/n1",
    { metadata: { labels: { "node-restriction.kubernetes.io/x": "y" } } },
    {
      "content-type": "application/merge-patch+json",
    },
  );
  assert.match(label.body.message, /is not allowed to modify labels: node-restriction.kubernetes.io\/x/);
  const secret = await http.request("GET", "/api/v1/namespaces/default/secrets/any");
  assert.equal(secret.code, 403);
  assert.match(secret.body.message, /no relationship found between node 'n1' and this object/);
  const lease = await http.request("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", {
    metadata: { name: "n1" },
    spec: {},
  });
  assert.equal(lease.code, 201);
  const pod = await http.request("POST", pods, aPod("own"));
  assert.match(pod.body.message, /can only create mirror pods/);
});

test("only one priority class may be the default", async () => {
  const aClass = (name: string): object => ({ metadata: { name }, value: 5, globalDefault: true });
  const path = "/apis/scheduling.k8s.io/v1/priorityclasses";
  assert.equal((await server.request("POST", path, aClass("first"))).code, 201);
  const second = await waitFor(
    async () => {
      const { code, body } = await server.request("POST", `${path}?dryRun=All`, aClass("second"));
      return code === 403 ? body : undefined;
    },
    { what: "the first class to be known" },
  );
  assert.match(String(second.message), /PriorityClass first is already marked as default. Only one default can exist/);
  await server.request("DELETE", `${path}/first`);
});

test("a namespace's label enforces a standard on its pods", async () => {
  await server.request("POST", "/api/v1/namespaces", {
    metadata: {
      name: "strict",
      labels: { "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted" },
    },
  });
  await server.request("POST", "/api/v1/namespaces/strict/serviceaccounts", { metadata: { name: "default" } });
  const strict = "/api/v1/namespaces/strict/pods";
  const refused = await server.request("POST", strict, aPod("root", { hostNetwork: true }));
  assert.equal(refused.code, 403);
  assert.equal(
    refused.body.message,
    'pods "root" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',
  );
  const warned = await server.request("POST", strict, aPod("plain"));
  assert.equal(warned.code, 201);
  assert.match(
    String(warned.headers["warning"]),
    /^299 - "would violate PodSecurity \\"restricted:latest\\": allowPrivilegeEscalation/,
  );
  const wrong = await server.request("POST", "/api/v1/namespaces", {
    metadata: { name: "odd", labels: { "pod-security.kubernetes.io/enforce": "none" } },
  });
  assert.equal(wrong.code, 422);
});

test("both admission steps are measured, with their outcome", async () => {
  await server.request("DELETE", "/api/v1/namespaces/default");
  const { text } = await server.request("GET", "/metrics");
  for (const labels of [
    'type="admit",operation="CREATE",rejected="false"',
    'type="validate",operation="CREATE",rejected="false"',
    'type="admit",operation="DELETE",rejected="true"',
  ]) {
    assert.match(text, new RegExp(`apiserver_admission_step_admission_duration_seconds_count\\{${labels}\\} [1-9]`));
  }
});
