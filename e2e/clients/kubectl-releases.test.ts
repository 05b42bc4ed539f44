import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fetchTool } from "@coxswain/dev-cluster/kubectl";
import { unpackedPackage } from "../framework/debian.ts";
import { type KubectlOptions, kubectl, type Outcome, printed, settings, startKubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Upstream supports a skew of one minor version, but users have others. 1.31 and later try WebSocket first. */
const releases = [
  { release: "1.20", program: () => join(unpackedPackage("kubernetes-client"), "usr/bin/kubectl") },
  ...(["1.22", "1.24", "1.27", "1.30", "1.33", "1.35"] as const).map((release) => ({
    release,
    program: () => fetchTool(settings, "kubectl", release),
  })),
];

/** Those of every run; the others run with the long form. */
const usual = ["1.20", "1.27", "1.35"];
const isLong = Boolean(process.env["COX_TEST_LONG"]);

const serve = "trap 'exit 0' TERM; mkdir -p /www; echo hello > /www/index.html; echo started; httpd -f -p 8080 -h /www & wait";

const manifest = (replicas: number): string => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "busybox:1.35", command: [sh, -c, "${serve}"]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
`;

// Two at a time: most of the time is waiting for pods.
describe("kubectl of other releases", { concurrency: 2 }, () => {
  for (const { release, program: find } of releases) {
    test(`kubectl ${release} applies, reads, changes, reaches into a pod and deletes`, {
      skip: !isLong && !usual.includes(release) && "a long form",
    }, async (t) => {
      const namespace = await newNamespace(t, `kubectl-${release.replace(".", "-")}`);
      const program = await find();
      const attempt = (args: string[], options: KubectlOptions = {}): Promise<Outcome> =>
        tryKubectl(["-n", namespace, ...args], { ...options, program });
      const run = (...args: (string | KubectlOptions)[]): Promise<string> => kubectl("-n", namespace, { program }, ...args);

      const versions = JSON.parse(await run("version", "-o", "json"));
      assert.equal(`${versions.clientVersion.major}.${versions.clientVersion.minor.replace("+", "")}`, release);
      assert.equal(versions.serverVersion.gitVersion, "v1.23.0");

      const input = manifest(1);
      assert.match(await run("apply", "-f", "-", { input }), /deployment.apps\/web created[\s\S]*configmap\/settings created/);
      assert.match(await run("apply", "-f", "-", { input }), /deployment.apps\/web unchanged/);
      assert.match(await run("rollout", "status", "deployment/web", "--timeout=180s"), /successfully rolled out/);
      // Values that change by themselves differ between two calls.
      assert.equal((await attempt(["diff", "-f", "-"], { input })).code, 0, "nothing differs");
      assert.equal((await attempt(["diff", "-f", "-"], { input: manifest(2) })).code, 1);
      assert.match(await run("get", "all", "-o", "wide"), /deployment\.apps\/web +1\/1 +1 +1 +\S+ +main +busybox:1\.35 +app=web/);
      assert.match(await run("describe", "deployment", "web"), /1 desired \| 1 updated \| 1 total \| 1 available/);
      assert.match(await run("explain", "deployment.spec.replicas"), /replicas\s+<integer>/);
      assert.match(await run("api-resources", "--api-group=apps"), /deployments +deploy +apps\/v1 +true +Deployment/);
      // A new cluster has metrics after two scrapes.
      const top = await waitFor("metrics of the node", async () => {
        const { code, stdout } = await attempt(["top", "nodes"]);
        return code === 0 && stdout;
      });
      assert.match(top, /^NAME +CPU\(cores\) .*\n\S+ +\d+m /);
      assert.equal((await run("auth", "can-i", "create", "pods")).trim(), "yes");

      const wrong = await attempt(["create", "-f", "-"], { input: input.replace("replicas: 1", "replicas: -1") });
      assert.match(wrong.stderr, /spec\.replicas: Invalid value: -1: must be greater than or equal to 0/);
      await run("label", "configmap", "settings", "tier=front");
      await run("patch", "configmap", "settings", "-p", '{"data":{"color":"blue"}}');
      assert.equal(await run("get", "configmap", "-l", "tier=front", "-o", "jsonpath={.items[*].data.color}"), "blue");
      assert.match(await run("apply", "--server-side", "--force-conflicts", "-f", "-", { input }), /settings serverside-applied/);
      assert.equal(await run("get", "configmap", "settings", "-o", "jsonpath={.data.color}"), "red");
      await run("scale", "deployment/web", "--replicas=2");
      await run("wait", "deployment/web", "--for=condition=Available", "--timeout=180s");

      const pod = (await run("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")).trim();
      await run("wait", `pod/${pod}`, "--for=condition=Ready", "--timeout=180s");
      await waitFor("its log", async () => (await run("logs", pod)) === "started\n");
      assert.equal(await run("exec", "-i", pod, "--", "cat", { input: "through stdin" }), "through stdin");
      assert.equal((await attempt(["exec", pod, "--", "sh", "-c", "exit 7"])).code, 7);
      const forward = startKubectl(["-n", namespace, "port-forward", pod, ":8080"], false, program);
      t.after(() => forward.kill());
      const port = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(await printed(forward, /Forwarding from 127\.0\.0\.1:\d+/))?.[1];
      assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "hello\n");
      forward.kill();

      assert.match(await run("delete", "-f", "-", { input }), /configmap "settings" deleted/);
      assert.equal((await attempt(["get", "deployment", "web"])).code, 1);
    });
  }
});
