import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Quota {
  status: { hard?: Record<string, string>; used?: Record<string, string> };
}

test("a quota is counted, holds against one too many, and gets back what is deleted", async (t) => {
  const namespace = await newNamespace(t, "quota");
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const used = async (): Promise<Record<string, string>> =>
    (await getJson<Quota>("resourcequota", "limits", "-n", namespace)).status.used ?? {};
  const usedUp = (what: string, want: Record<string, string>) =>
    waitFor(what, async () => {
      const now = await used();
      return Object.entries(want).every(([resource, amount]) => now[resource] === amount);
    });
  await run("create", "configmap", "before");
  const inNamespace = Number((await getJson<{ items: object[] }>("configmaps", "-n", namespace)).items.length);
  const hard = `count/configmaps=${inNamespace + 1},pods=1,requests.cpu=300m,services=1`;
  await run("create", "quota", "limits", `--hard=${hard}`);
  await usedUp("what is there to be counted", {
    "count/configmaps": String(inNamespace),
    pods: "0",
    "requests.cpu": "0",
    services: "0",
  });

  await run("create", "configmap", "last");
  const refused = await tryKubectl(["-n", namespace, "create", "configmap", "surplus"]);
  assert.match(
    refused.stderr,
    new RegExp(
      `configmaps "surplus" is forbidden: exceeded quota: limits, requested: count/configmaps=1, used: count/configmaps=${inNamespace + 1}, limited: count/configmaps=${inNamespace + 1}`,
    ),
  );
  await run("delete", "configmap", "last");
  await usedUp("a configmap given back", { "count/configmaps": String(inNamespace) });
  await run("create", "configmap", "surplus");

  const pod = (name: string, cpu?: string): string =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: "main",
            image: "busybox:1.35",
            command: ["sleep", "3600"],
            ...(cpu !== undefined && { resources: { requests: { cpu } } }),
          },
        ],
      },
    });
  const createPod = (text: string) => tryKubectl(["-n", namespace, "create", "-f", "-"], { input: text });
  assert.match((await createPod(pod("none"))).stderr, /failed quota: limits: must specify requests\.cpu/);
  assert.match(
    (await createPod(pod("large", "400m"))).stderr,
    /exceeded quota: limits, requested: requests\.cpu=400m, used: requests\.cpu=0, limited: requests\.cpu=300m/,
  );
  assert.equal((await createPod(pod("fits", "200m"))).code, 0);
  await usedUp("the pod to be counted", { pods: "1", "requests.cpu": "200m" });
  assert.match(
    (await createPod(pod("second", "50m"))).stderr,
    /exceeded quota: limits, requested: pods=1, used: pods=1, limited: pods=1/,
  );
  await run("delete", "pod", "fits");
  await usedUp("the pod given back", { pods: "0", "requests.cpu": "0" });
  assert.equal((await createPod(pod("second", "50m"))).code, 0);
});
