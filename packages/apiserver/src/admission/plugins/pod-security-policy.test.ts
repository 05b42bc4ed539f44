import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let jane: ReturnType<typeof newHttp>;
before(async () => {
  server = await startTestServer(undefined, [
    "--enable-admission-plugins=PodSecurityPolicy",
    "--feature-gates=EphemeralContainers=true",
  ]);
  for (const name of ["default", "trusted"])
    await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name } });
  jane = newHttp(server.url, server.ca, await server.clientCertificate("jane", ["developers"]));
  await grant("edit-pods", { apiGroups: [""], resources: ["*"], verbs: ["*"] }, { kind: "User", name: "jane" });
});
after(async () => {
  jane.close();
  await server.stop();
});

const rbac = "/apis/rbac.authorization.k8s.io/v1";
async function grant(name: string, rule: object, subject: object): Promise<void> {
  await server.request("POST", `${rbac}/clusterroles`, { metadata: { name }, rules: [rule] });
  const { code, text } = await server.request("POST", `${rbac}/namespaces/default/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    subjects: [subject],
  });
  assert.equal(code, 201, text);
}
const use = (policy: string): object => ({
  apiGroups: ["policy"],
  resources: ["podsecuritypolicies"],
  resourceNames: [policy],
  verbs: ["use"],
});

const any = { rule: "RunAsAny" };
async function policy(name: string, spec: object): Promise<void> {
  const { code, text } = await server.request("POST", "/apis/policy/v1beta1/podsecuritypolicies", {
    metadata: { name },
    spec: { seLinux: any, runAsUser: any, supplementalGroups: any, fsGroup: any, volumes: ["*"], ...spec },
  });
  assert.equal(code, 201, text);
}

const pods = "/api/v1/namespaces/default/pods";
const aPod = (name: string, spec: object = {}, context?: object): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "busybox", ...(context && { securityContext: context }) }], ...spec },
});
const dryRun = (pod: object) => jane.request("POST", `${pods}?dryRun=All`, pod);

test("without a policy every pod is refused", async () => {
  const { code, body } = await server.request("POST", pods, aPod("first"));
  assert.equal(code, 403);
  assert.equal(body.message, 'pods "first" is forbidden: PodSecurityPolicy: no providers available to validate pod request');
});

test("a policy applies to users who may use it, and only they get its errors", async () => {
  await policy("m-restricted", { runAsUser: { rule: "MustRunAsNonRoot" }, allowPrivilegeEscalation: false });
  const refusal = async () => (await dryRun(aPod("p"))).body.message;
  await waitFor(async () => (await refusal()) === 'pods "p" is forbidden: PodSecurityPolicy: unable to admit pod: []');
  await grant("use-restricted", use("m-restricted"), { kind: "User", name: "jane" });
  await waitFor(async () => (await dryRun(aPod("p"))).code === 201);
  const { body } = await jane.request("POST", pods, aPod("p"));
  assert.equal(body.metadata.annotations["kubernetes.io/psp"], "m-restricted");
  assert.deepEqual(body.spec.containers[0].securityContext, { runAsNonRoot: true, allowPrivilegeEscalation: false });
  const root = await dryRun(aPod("q", {}, { privileged: true, runAsUser: 0 }));
  assert.equal(root.code, 403);
  assert.equal(
    root.body.message,
    'pods "q" is forbidden: PodSecurityPolicy: unable to admit pod: [' +
      "spec.containers[0].securityContext.runAsUser: Invalid value: 0: running with the root UID is forbidden " +
      "spec.containers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]",
  );
});

test("a service account's policies count for its pods", async () => {
  await policy("n-privileged", { privileged: true, hostNetwork: true, hostPorts: [{ min: 0, max: 65535 }] });
  await grant("use-privileged", use("n-privileged"), { kind: "ServiceAccount", name: "trusted", namespace: "default" });
  const privileged = aPod("trusted", { serviceAccountName: "trusted" }, { privileged: true });
  await waitFor(async () => (await dryRun(privileged)).code === 201);
  const { body } = await jane.request("POST", pods, privileged);
  assert.equal(body.metadata.annotations["kubernetes.io/psp"], "n-privileged");
  assert.equal((await dryRun(aPod("other", {}, { privileged: true }))).code, 403);
});

test("a policy that admits the pod unchanged is preferred to an earlier one that changes it", async () => {
  await policy("a-changes", { readOnlyRootFilesystem: true });
  await grant("use-a", use("a-changes"), { kind: "ServiceAccount", name: "trusted", namespace: "default" });
  const plain = aPod("plain", { serviceAccountName: "trusted" });
  const nameFor = async (pod: object) => (await dryRun(pod)).body.metadata?.annotations?.["kubernetes.io/psp"];
  const readOnly = aPod("read-only", { serviceAccountName: "trusted" }, { readOnlyRootFilesystem: true });
  await waitFor(async () => (await nameFor(readOnly)) === "a-changes");
  assert.equal(await nameFor(plain), "n-privileged");
});

test("an update must satisfy a policy and is not mutated", async () => {
  const image = { spec: { containers: [{ name: "c", image: "busybox:2" }] } };
  const patch = (name: string, body: object, subresource = "") =>
    jane.request("PATCH", `${pods}/${name}${subresource}`, body, { "content-type": "application/strategic-merge-patch+json" });
  const { code, body } = await patch("p", image);
  assert.equal(code, 200, JSON.stringify(body));
  assert.equal(body.spec.containers[0].image, "busybox:2");
  const bad = { spec: { ephemeralContainers: [{ name: "e", image: "busybox", securityContext: { privileged: true } }] } };
  const refused = await patch("p", bad, "/ephemeralcontainers");
  assert.equal(refused.code, 403, JSON.stringify(refused.body));
  assert.match(refused.body.message, /ephemeralContainers\[0\].securityContext.privileged: Invalid value: true/);
});

test("of several policies that change the pod, the first by name is applied", async () => {
  const nameFor = async (name: string) => (await dryRun(aPod(name))).body.metadata?.annotations?.["kubernetes.io/psp"];
  assert.equal(await nameFor("before"), "m-restricted");
  await policy("b-earlier", { runAsUser: { rule: "MustRunAsNonRoot" }, readOnlyRootFilesystem: true });
  await policy("z-later", { runAsUser: { rule: "MustRunAsNonRoot" }, readOnlyRootFilesystem: true });
  for (const name of ["z-later", "b-earlier"]) await grant(`use-${name}`, use(name), { kind: "User", name: "jane" });
  await waitFor(async () => (await nameFor("after")) === "b-earlier", { what: "the first of the policies" });
});
