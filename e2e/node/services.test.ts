import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, runToEnd, waitForPod } from "../framework/pods.ts";
import { lookedAt, waitFor } from "../framework/wait-for.ts";

/** The rules for an address: those that name it, and those of the chains that they lead to. */
function rulesFor(address: string, rules: readonly string[]): string[] {
  const found = rules.filter((rule) => rule.includes(`-d ${address}/32 `));
  const seen = new Set<string>();
  for (const rule of found) {
    const chain = / -j (COX-\S+)/.exec(rule)?.[1];
    if (chain === undefined || seen.has(chain)) continue;
    seen.add(chain);
    found.push(...rules.filter((other) => other.startsWith(`-A ${chain} `)));
  }
  return found;
}

/** Waits until this machine routes a Service's address correctly: its routing rules are in place, including the last one. */
const routed = (address: string, target: string): Promise<true> =>
  waitFor(`the route of ${address} (${target})`, async () => {
    const rules = lookedAt(execFileSync("iptables-save", { encoding: "utf8" })).split("\n");
    return rulesFor(address, rules).some((rule) => rule.includes(target));
  });

test("a pod reaches another through a Service's cluster IP, and the API server through the kubernetes Service", async (t) => {
  const namespace = await newNamespace(t, "service");
  await createPod(namespace, "server", {
    containers: [busybox("main", "mkdir /www; echo served > /www/index.html; httpd -f -p 8080 -h /www")],
  });
  await waitForPod(namespace, "server", "is ready", isReady);
  await kubectl("expose", "pod", "server", "-n", namespace, "--name=front", "--port=80", "--target-port=8080");
  const address = await kubectl("get", "service", "front", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}");
  const server = await waitForPod(namespace, "server", "has an address", (pod) => pod.status.podIP !== undefined);
  await routed(address, `to-destination ${server.status.podIP}:8080`);
  const fetched = await runToEnd(namespace, "client", {
    containers: [busybox("main", `wget -q -O - http://${address}/`)],
  });
  assert.equal(fetched, "served\n");
  const connected = await runToEnd(namespace, "api-client", {
    containers: [busybox("main", 'nc "$KUBERNETES_SERVICE_HOST" "$KUBERNETES_SERVICE_PORT" </dev/null && echo connected')],
  });
  assert.equal(connected, "connected\n");
});

test("a Service without endpoints refuses connections at once", async (t) => {
  const namespace = await newNamespace(t, "refuse");
  await kubectl("create", "service", "clusterip", "empty", "-n", namespace, "--tcp=80:80");
  const address = await kubectl("get", "service", "empty", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}");
  await routed(address, "-j REJECT");
  const answer = await runToEnd(namespace, "client", {
    containers: [
      // With a route that drops packets wget takes minutes; without a route the packets go elsewhere.
      busybox("main", `timeout 10 wget -q -O - http://${address}/ 2>&1 || true`),
    ],
  });
  assert.match(answer, /refused/);
});
