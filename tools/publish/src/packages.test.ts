/** Packs the packages of the daemons, installs them in an empty project, and runs a cluster there with a real etcd. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { freePort, startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { publishedPackages } from "./packages.ts";
import { checkTypes, projectWith, run } from "./testing-project.ts";

const scratch = mkdtempSync(join(tmpdir(), "cox-publish-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const packages = publishedPackages.filter(({ folder }) => folder !== "testing");
const project = projectWith(
  scratch,
  packages.map(({ folder }) => folder),
);
project.catch(() => {});

const use = `
import { newClient } from "@coxswain/apimachinery";
import { deployments, nodes, pods, serviceAccounts } from "@coxswain/apimachinery/resources";
import { startKubeApiserver } from "@coxswain/apiserver";
import { newControllerManager } from "@coxswain/controller-manager";
import { newKubeScheduler } from "@coxswain/scheduler";
import { startKubelet } from "@coxswain/node-agent";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import assert from "node:assert/strict";

const [etcd, prefix, port] = process.argv.slice(2);
writeFileSync("tokens.csv", 'secret,admin,1,"system:masters"');
writeFileSync("sa.key", generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }));
const server = await startKubeApiserver([
  "--etcd-servers=" + etcd, "--etcd-prefix=" + prefix, "--secure-port=" + port, "--bind-address=127.0.0.1", "--cert-dir=certs",
  "--token-auth-file=tokens.csv", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/16",
  "--service-account-issuer=https://x", "--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key",
]);
await server.ready();
const clientConfig = { host: server.url, token: "secret", insecure: true, qps: -1 };
const ends = new AbortController();
const { signal } = ends;
const running = [
  newControllerManager(["--controllers=deployment,replicaset,serviceaccount", "--leader-elect=false"]).run({ clientConfig, signal }),
  newKubeScheduler([]).run({ clientConfig, signal }),
];
const client = newClient(clientConfig);
const capacity = { cpu: "4", memory: "4Gi", pods: "10" };
await client.create(nodes, { metadata: { name: "node" }, status: { capacity, allocatable: capacity } });
await client.patch(nodes, { name: "node" }, { type: "merge", body: { spec: { taints: null } } });
const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "i" }] } };
const spec = { replicas: 2, selector: { matchLabels: { app: "web" } }, template };
await client.create(deployments, { metadata: { name: "web", namespace: "default" }, spec });
for (const end = Date.now() + 120_000; ; ) {
  assert.ok(Date.now() < end, "the pods of the Deployment were not bound within two minutes");
  const { items } = await client.list(pods, { namespace: "default" });
  if (items.filter(({ spec }) => spec.nodeName === "node").length === 2) break;
  await new Promise((resolve) => setTimeout(resolve, 20));
}
ends.abort();
await Promise.allSettled(running);
client.close();
await server.stop();
await assert.rejects(startKubelet(["--nope"]), /unknown flag: --nope/);
console.log("done");
`;

test("a cluster of the packages schedules pods and stops completely", async () => {
  const [etcd, user] = await Promise.all([startEtcd(), project]);
  const file = join(user, "use.mjs");
  writeFileSync(file, use);
  const prefix = `/publish-${process.pid}`;
  const { stdout } = await run(process.execPath, [file, etcd.endpoint, prefix, String(await freePort())], {
    cwd: user,
    timeout: 120_000,
  });
  assert.equal(stdout, "done\n");
});

for (const { folder, entries, programs, node } of packages) {
  test(`@coxswain/${folder} has its documents and entries, no tests or sources, and starts nothing when imported`, async () => {
    const own = join(await project, "node_modules/@coxswain", folder);
    const manifest = JSON.parse(readFileSync(join(own, "package.json"), "utf8"));
    assert.deepEqual(
      [manifest.private, manifest.dependencies, manifest.license, manifest.engines.node],
      [undefined, undefined, "Apache-2.0", `>=${node}`],
    );
    for (const file of ["README.md", "LICENSE", "THIRD_PARTY_LICENSES"]) assert.ok(existsSync(join(own, file)), file);
    assert.deepEqual(
      readdirSync(own, { recursive: true }).filter((file) => /\.test\.|(?:^|\/)(?:src|testing)(?:\/|$)/.test(String(file))),
      [],
    );
    // Importing starts nothing, and internal modules cannot be imported.
    const names = Object.keys(entries).map((path) => `@coxswain/${folder}${path.slice(1)}`);
    const code = `${names.map((name) => `await import("${name}");`).join("")}
      await import("@coxswain/${folder}/dist/index.js").then(() => process.exit(3), (err) => console.log(err.code));`;
    const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: await project });
    assert.deepEqual([stdout, stderr], ["ERR_PACKAGE_PATH_NOT_EXPORTED\n", ""]);
    for (const program of Object.keys(programs)) {
      const shown = await run(join(await project, "node_modules/.bin", program), ["--version"]);
      assert.match(shown.stdout, /^Kubernetes v1\.23\./);
    }
  });
}

test("types are complete", async () => {
  const user = await project;
  writeFileSync(
    join(user, "typed.ts"),
    `import { type Client, newClient, newInformerFactory, realClock, discardLogger } from "@coxswain/apimachinery";
import type { CoreV1 } from "@coxswain/apimachinery/kinds";
import { pods } from "@coxswain/apimachinery/resources";
import { type KubeApiserver, startKubeApiserver } from "@coxswain/apiserver";
import { newControllerManager } from "@coxswain/controller-manager";
import { startKubelet } from "@coxswain/node-agent";
import { newKubeScheduler } from "@coxswain/scheduler";
const server: KubeApiserver = await startKubeApiserver(["--secure-port=6443"]);
const client: Client = newClient({ host: server.url, token: "t" });
const informer = newInformerFactory(client, { clock: realClock, log: discardLogger }).for<CoreV1.Pod>(pods);
const phase: string | undefined = informer.lister.get("default/web")?.status?.phase;
const { signal } = new AbortController();
await newKubeScheduler([]).run({ clientConfig: { host: server.url }, signal });
await newControllerManager([]).run({ clientConfig: { host: server.url }, signal });
await startKubelet([], { clientConfig: { host: server.url } });
// @ts-expect-error the package does not know this
await startKubeApiserver(phase);
`,
  );
  await checkTypes(user, "typed.ts");
});
