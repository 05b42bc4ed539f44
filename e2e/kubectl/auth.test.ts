import assert from "node:assert/strict";
import { test } from "node:test";
import { type KubeconfigName, kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Requests that each daemon's credentials permit, and requests that they do not. */
const rights: readonly { who: KubeconfigName; may: readonly string[]; mayNot: readonly string[] }[] = [
  {
    who: "controller-manager",
    may: ["create tokenreviews", "create subjectaccessreviews", "create serviceaccounts --subresource=token", "list pods -A"],
    mayNot: ["* *", "delete pods", "create pods", "update nodes", "impersonate users", "create clusterrolebindings"],
  },
  {
    who: "scheduler",
    may: ["create pods --subresource=binding", "create tokenreviews", "create subjectaccessreviews", "list nodes"],
    mayNot: ["* *", "get secrets", "list configmaps", "update nodes", "create pods", "create pods --subresource=exec"],
  },
  {
    who: "kubelet",
    may: ["list nodes", "create nodes", "create tokenreviews", "create certificatesigningrequests"],
    mayNot: ["* *", "list secrets", "list configmaps -A", "delete namespaces", "create pods --subresource=exec"],
  },
  {
    who: "services",
    may: [
      "list services -A",
      "watch endpointslices -A",
      "list nodes",
      "list pods -A",
      "create persistentvolumes",
      "create events",
    ],
    mayNot: [
      "* *",
      "list secrets -A",
      "create pods",
      "update services",
      "update nodes",
      "create serviceaccounts",
      "create nodes --subresource=proxy",
    ],
  },
];

for (const { who, may, mayNot } of rights) {
  test(`the credentials of ${who} have the rights of its role and no more`, async () => {
    const config = kubeconfigFile(settings, who);
    const canI = async (what: string): Promise<string> =>
      (await tryKubectl(["--kubeconfig", config, "auth", "can-i", ...what.split(" ")])).stdout.trim();
    for (const what of may) assert.equal(await canI(what), "yes", what);
    for (const what of mayNot) assert.match(await canI(what), /^no( - .*)?$/, what);
  });
}

const manifest = (namespace: string): string => `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ${namespace}}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}]
`;

test("auth reconcile creates a role and its binding once, and auth can-i reports what they grant", async (t) => {
  const namespace = await newNamespace(t, "auth");
  const reconcile = async (): Promise<string> => {
    const { code, stdout, stderr } = await tryKubectl(["auth", "reconcile", "-f", "-"], { input: manifest(namespace) });
    assert.equal(code, 0, stderr);
    return stdout + stderr;
  };
  assert.match(await reconcile(), /reader reconciled[\s\S]*missing rules added[\s\S]*missing subjects added/);
  assert.doesNotMatch(await reconcile(), /added/);
  const asJane = async (...words: string[]): Promise<string> =>
    (await tryKubectl(["auth", "can-i", "-n", namespace, "--as=jane", ...words])).stdout;
  await waitFor("jane's right to get pods", async () => (await asJane("get", "pods")) === "yes\n");
  assert.equal(await asJane("get", "pods", "--subresource=log"), "no\n");
  assert.equal(await asJane("delete", "pods"), "no\n");
  assert.equal(await asJane("get", "/healthz"), "yes\n");
  assert.match(await asJane("--list"), /^pods +\[\] +\[\] +\[get list\]$/m);
});
