/** API aggregation as seen by kubectl and the controllers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type AggregatedServer, startAggregatedServer } from "@coxswain/apiserver/testing/aggregated-server";
import { kubectl, settings, startKubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

/** A server on this machine with an available APIService, reached through an ExternalName service. */
async function aggregated(t: TestContext, namespace: string): Promise<AggregatedServer> {
  const group = `${namespace}.example.com`;
  const server = await startAggregatedServer(t, {
    group,
    address: "127.0.0.1",
    names: [`flunders.${namespace}.svc`],
    proxyCa: readFileSync(join(settings.state, "pki", "front-proxy-ca.crt"), "utf8"),
  });
  const manifest = `
apiVersion: v1
kind: Service
metadata: {name: flunders, namespace: ${namespace}}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.${group}}
spec:
  group: ${group}
  version: v1
  groupPriorityMinimum: 2000
  versionPriority: 10
  service: {namespace: ${namespace}, name: flunders, port: ${server.port}}
  caBundle: ${server.caBundle}
`;
  t.after(() => tryKubectl(["delete", "apiservice", `v1.${group}`]));
  await kubectl("apply", "-f", "-", { input: manifest });
  await kubectl("wait", "--for=condition=Available", `apiservice/v1.${group}`, "--timeout=180s");
  return server;
}

const aFlunder = (group: string, namespace: string, name: string): string => `
apiVersion: ${group}/v1
kind: Flunder
metadata: {name: ${name}, namespace: ${namespace}}
`;

test("kubectl makes, gets, watches, explains and deletes what another server has", async (t) => {
  const namespace = await newNamespace(t, "aggregated");
  const { group } = await aggregated(t, namespace);
  const services = await kubectl("get", "apiservices");
  assert.match(services, new RegExp(`^v1.${group} +${namespace}/flunders +True `, "m"));
  assert.match(services, /^v1\.apps +Local +True /m);
  assert.match(await kubectl("api-resources", `--api-group=${group}`), /^flunders +fl +\S+\/v1 +true +Flunder$/m);

  const watching = startKubectl(["get", "flunders", "-n", namespace, "-w", "-o", "name"]);
  t.after(() => watching.kill("SIGKILL"));
  let seen = "";
  watching.stdout?.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
  });
  const made = await kubectl("create", "-f", "-", { input: aFlunder(group, namespace, "first") });
  assert.equal(made, `flunder.${group}/first created\n`);
  await waitFor("the watch to show the flunder", async () => seen.includes(`flunder.${group}/first`));
  assert.match(await kubectl("get", "fl", "-n", namespace), /^NAME +AGE\nfirst /);
  assert.equal(await kubectl("delete", "flunder", "first", "-n", namespace), `flunder.${group} "first" deleted\n`);

  const explained = await waitFor("the description of flunders", async () => {
    const { code, stdout } = await tryKubectl(["explain", "flunders.spec", `--api-version=${group}/v1`]);
    return code === 0 && stdout;
  });
  assert.match(explained, /What a flunder is to be\./);
});

test("a namespace is removed when the objects of an aggregated server are deleted, and waits while that server does not respond", async (t) => {
  const namespace = await newNamespace(t, "aggregated-home");
  const doomed = await newNamespace(t, "aggregated-doomed");
  const server = await aggregated(t, namespace);
  await kubectl("create", "-f", "-", { input: aFlunder(server.group, doomed, "last") });
  server.discoveryStatus = 500;
  await kubectl("delete", "namespace", doomed, "--wait=false");
  const conditions = `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].status}`;
  await waitFor(
    "the namespace to say what it waits for",
    async () => (await kubectl("get", "namespace", doomed, "-o", conditions)) === "True",
  );
  assert.deepEqual(server.stored, [`${doomed}/last`]);
  server.discoveryStatus = 200;
  await waitFor("the namespace to go", async () => (await tryKubectl(["get", "namespace", doomed])).code !== 0);
  assert.deepEqual(server.stored, []);
});
