/** What an explanation tells depends on what the asker may read: for each right, which names of other objects occur. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const jane = { authorization: "Bearer user-token" };
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const subjects = [{ kind: "User", name: "jane", apiGroup: "rbac.authorization.k8s.io" }];

async function make(server: TestServer, path: string, body: object): Promise<void> {
  const { code, text } = await server.request("POST", path, body);
  assert.equal(code, 201, text);
}

/** Names of objects that are not in the pod, and that an explanation of it could give away. */
const names = ["class-of-a", "volume-of-a", "claim-of-b", "tenant-b", "taint-of-node", "node-x"];

/** Rights beside reading pods of the namespace a, and the names that an answer may have with them. */
const matrix: readonly { readonly rights: readonly string[]; readonly may: readonly string[] }[] = [
  { rights: [], may: [] },
  { rights: ["events"], may: [] },
  // A claim names its class and its volume; a volume its claim.
  { rights: ["persistentvolumeclaims"], may: ["class-of-a", "volume-of-a"] },
  {
    rights: ["persistentvolumeclaims", "persistentvolumes"],
    may: ["class-of-a", "volume-of-a", "claim-of-b", "tenant-b"],
  },
  { rights: ["nodes"], may: ["taint-of-node", "node-x"] },
];

async function prepared(t: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer(t, ["--disable-admission-plugins=ServiceAccount"]);
  for (const name of ["a", "tenant-b"]) await make(server, "/api/v1/namespaces", { metadata: { name } });
  const containers = [{ name: "main", image: "x" }];
  await make(server, "/api/v1/nodes", {
    metadata: { name: "node-x" },
    spec: { taints: [{ key: "taint-of-node", effect: "NoSchedule" }] },
  });
  const claim = {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "class-of-a",
  };
  await make(server, "/api/v1/namespaces/a/persistentvolumeclaims", {
    metadata: { name: "data" },
    spec: { ...claim, volumeName: "volume-of-a" },
  });
  await make(server, "/api/v1/persistentvolumes", {
    metadata: { name: "volume-of-a" },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "class-of-a",
      hostPath: { path: "/x" },
      claimRef: { namespace: "tenant-b", name: "claim-of-b", uid: "other" },
    },
  });
  await make(server, "/api/v1/namespaces/a/persistentvolumeclaims", { metadata: { name: "unbound" }, spec: claim });
  await make(server, "/api/v1/namespaces/a/pods", {
    metadata: { name: "provisions" },
    spec: { containers, volumes: [{ name: "data", persistentVolumeClaim: { claimName: "unbound" } }] },
  });
  await make(server, "/api/v1/namespaces/a/pods", {
    metadata: { name: "claims" },
    spec: { containers, volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }] },
  });
  await make(server, "/api/v1/namespaces/a/pods", { metadata: { name: "waits" }, spec: { containers } });
  return server;
}

const questions = [
  "namespaces/a/pods/claims",
  "namespaces/a/pods/provisions",
  "namespaces/a/pods/waits",
  "namespaces/a/pods/waits?about=node/node-x",
];

test("an explanation names what the asker may read, and nothing of other namespaces or of the cluster beside it", async (t) => {
  const server = await prepared(t);
  const reported = async (headers?: Record<string, string>): Promise<string[]> => {
    const answers = await Promise.all(
      questions.map(async (question) => {
        const { code, text } = await server.request("GET", `/debug/explain/${question}`, undefined, headers);
        // A refusal repeats the question.
        return code === 200 ? text : "";
      }),
    );
    return names.filter((name) => answers.some((answer) => answer.includes(name)));
  };
  const seen = await reported();
  t.diagnostic(`an administrator sees ${seen.join(", ")}`);
  // Else the rows below would prove nothing.
  for (const name of ["class-of-a", "volume-of-a", "taint-of-node"]) assert.ok(seen.includes(name), `${name} in ${seen}`);

  for (const { rights, may } of matrix) {
    const rules = [{ apiGroups: [""], resources: ["pods", ...rights], verbs: ["get", "list", "watch"] }];
    const isWide = rights.some((right) => /^(?:nodes|persistentvolumes)$/.test(right));
    const where = isWide ? "cluster" : "";
    const name = `jane-${rights.join("-")}`;
    const base = isWide ? rbac : `${rbac}/namespaces/a`;
    await make(server, `${base}/${where}roles`, { metadata: { name }, rules });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: isWide ? "ClusterRole" : "Role", name };
    await make(server, `${base}/${where}rolebindings`, { metadata: { name }, roleRef, subjects });
    const found = await reported(jane);
    assert.deepEqual(
      found.filter((one) => !may.includes(one)),
      [],
      `with ${rights.join(", ") || "pods alone"}: ${found}`,
    );
    const { code } = await server.request("DELETE", `${base}/${where}rolebindings/${name}`);
    assert.equal(code, 200);
  }
  // Without any right nothing is answered, not even whether the object exists.
  for (const question of [...questions, "namespaces/a/pods/none", "nodes/node-x"]) {
    const { code } = await server.request("GET", `/debug/explain/${question}`, undefined, jane);
    assert.equal(code, 403, question);
  }
});
