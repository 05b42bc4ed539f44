/** What kubectl why says where there is no answer, and how it watches. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { send } from "../framework/api.ts";
import { kubectl, tryKubectl } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";
import { type RunningWhy, startWhy, why } from "./plugin.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
const namespace = "why-plugin";

const manifest = (apiVersion: string, kind: string, name: string, more: object): object => ({
  apiVersion,
  kind,
  metadata: { name, namespace },
  ...more,
});
const apply = (...items: object[]) =>
  kubectl("apply", "-f", "-", { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });

before(() => kubectl("create", "namespace", namespace));
after(() => tryKubectl(["delete", "namespace", namespace, "--wait=false"]));

for (const { name, args, line } of [
  {
    name: "an unknown type",
    args: ["foo/x"],
    line: /^the server doesn't have a resource type "foo"; list them: kubectl api-resources$/,
  },
  {
    name: "a missing object",
    args: ["pod/none"],
    line: /^pods "none" not found \(in namespace why-plugin, .*; list them: kubectl get pod --all-namespaces$/,
  },
  {
    name: "no right to read it",
    args: ["pod/none", "--as=jane"],
    line: /^pods "none" is forbidden: User "jane" cannot get .*; see what you may: /,
  },
  {
    name: "no right to ask",
    args: ["pod/none", "--as=system:anonymous", "--as-group=system:unauthenticated"],
    line: /^forbidden: User "system:anonymous" cannot get path .*; an administrator allows it: ClusterRoleBinding system:explain$/,
  },
  {
    name: "a server that is not there",
    args: ["pod/none", "--server=https://127.0.0.1:1"],
    line: /^the API server does not answer: The connection to the server 127\.0\.0\.1:1 was refused/,
  },
]) {
  test(`one line says what is missing: ${name}`, async () => {
    const { code, stdout, stderr } = await why(args, namespace);
    assert.deepEqual([code, stdout, stderr.split("\n").length], [2, "", 2], stderr);
    assert.match(stderr.replace(/^kubectl why: /, "").trimEnd(), line);
  });
}

const printed = (running: RunningWhy, text: RegExp) =>
  waitFor(`${text} of a watch`, async () => (text.test(running.text()) ? true : undefined));

test("a watch ends with 0 when what is deleted is gone, with 130 when it is interrupted", async () => {
  const held = manifest("v1", "ConfigMap", "held", {});
  await apply({ ...held, metadata: { name: "held", namespace, finalizers: ["example.com/hold"] } });
  await kubectl("-n", namespace, "delete", "configmap", "held", "--wait=false");
  const [watch, interrupted] = await Promise.all([
    startWhy(["configmap/held", "--watch"], namespace),
    startWhy(["configmap/held", "--watch"], namespace),
  ]);
  await printed(watch, /^Cause: .*finalizer example\.com\/hold/);
  await printed(interrupted, /^Cause: /);
  interrupted.process.kill("SIGINT");
  assert.equal((await interrupted.ended).code, 130);
  await kubectl("-n", namespace, "patch", "configmap", "held", "--type=merge", '-p={"metadata":{"finalizers":null}}');
  const { code, stdout, stderr } = await watch.ended;
  assert.match(stdout, /\nGone: configmap\/held was deleted\.\n$/);
  assert.deepEqual([code, stderr], [0, ""]);
});

test("a watch reports when the next attempt is, and ends with 0 when the object is healthy", {
  skip: isLong ? false : "waits for the kubelet's next attempt, with --long",
}, async () => {
  const settingsOf = { configMapRef: { name: "settings" } };
  const container = { name: "web", image: "busybox:1.35", command: ["sleep", "3600"], envFrom: [settingsOf] };
  await waitFor("the service account", () => kubectl("-n", namespace, "get", "serviceaccount", "default"), { retry: () => true });
  await apply(manifest("v1", "Pod", "web", { spec: { terminationGracePeriodSeconds: 0, containers: [container] } }));
  const watch = await startWhy(["pod/web", "--watch"], namespace);
  await printed(watch, /^Cause: .*settings/m);
  await waitFor("the next attempt of the kubelet", async () => {
    const { stdout } = await why(["pod/web"], namespace);
    return /^ {2}pod\/web +kubelet sync: .*next try at \d{4}-.*Z\)$/m.test(stdout) ? true : undefined;
  });
  await apply(manifest("v1", "ConfigMap", "settings", { data: { a: "b" } }));
  const { code, stdout } = await watch.ended;
  assert.match(stdout, /\nHealthy: pod\/web: /);
  assert.equal(code, 0);
});

test("the flow schema whose requests get 429 says so, with who sent the last", async (t) => {
  const apiVersion = "flowcontrol.apiserver.k8s.io/v1beta2";
  const limited = { assuredConcurrencyShares: 1, limitResponse: { type: "Reject" } };
  const everywhere = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true };
  const rules = [{ subjects: [{ kind: "User", user: { name: "flood" } }], resourceRules: [everywhere] }];
  const clusterWide = (kind: string, spec: object) => ({ apiVersion, kind, metadata: { name: "why-flood" }, spec });
  t.after(() => tryKubectl(["delete", "flowschema,prioritylevelconfiguration,clusterrolebinding", "why-flood"]));
  // A request that is forbidden is over too soon.
  await kubectl("create", "clusterrolebinding", "why-flood", "--clusterrole=view", "--user=flood");
  await apply(
    clusterWide("PriorityLevelConfiguration", { type: "Limited", limited }),
    clusterWide("FlowSchema", { priorityLevelConfiguration: { name: "why-flood" }, matchingPrecedence: 500, rules }),
  );
  const flood = { "impersonate-user": "flood" };
  await waitFor(
    "a request that gets 429",
    async () => {
      const codes = await Promise.all(
        Array.from({ length: 100 }, async () => (await send("GET", "/api/v1/pods", undefined, flood)).code),
      );
      return codes.includes(429) ? true : undefined;
    },
    { timeoutMs: 60_000 },
  );
  const { stdout } = await why(["flowschema/why-flood"], namespace);
  assert.match(stdout, /flow-control: requests of its flows got 429: .*\d+ times\)/);
  const { stdout: json } = await why(["flowschema/why-flood", "-o", "json"], namespace);
  assert.match(json, /"lastUser":"flood","lastRequest":"list \/api\/v1\/pods"/);
});
