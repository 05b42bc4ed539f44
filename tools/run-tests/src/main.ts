import { spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `main.ts [--long] [path…]`: every check of the repository in the order of what is cheap to know. With paths only the
 * tests below them. Closes with `N passed, N failed` alone on a line; exit code 1 when anything failed.
 */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const args = process.argv.slice(2);
const long = args.includes("--long");
const paths = args.filter((arg) => !arg.startsWith("-")).map((path) => path.replace(/\/$/, ""));
const bin = (name: string): string => join(root, "node_modules", ".bin", name);
const node = (...rest: string[]): string[] => [process.execPath, "-C", "cox-source", ...rest];
const total = { passed: 0, failed: 0 };
const start = performance.now();

/** State, networks and ports apart from a cluster the developer may have running. */
const e2eEnv = {
  COX_STATE: ".cox/e2e",
  COX_NODE_NAME: "e2e-node",
  COX_AUDIT_POLICY: "e2e/framework/audit-policy.yaml",
  // Programs are killed, the machine never: a slow disk must cost no leader its lease.
  COX_ETCD_WITHOUT_SYNC: "1",
  COX_POD_NETWORK: "10.245",
  COX_SERVICE_NETWORK: "10.97",
  COX_PORT_APISERVER: "16443",
  COX_PORT_ETCD: "12379",
  COX_PORT_ETCDPEER: "12380",
  COX_PORT_CONTROLLERMANAGER: "20257",
  COX_PORT_SCHEDULER: "20259",
  COX_PORT_KUBELET: "20250",
  COX_PORT_KUBELETHEALTHZ: "20248",
};

if (paths.length === 0) {
  await check("lint", [bin("biome"), "check", "--diagnostic-level=error", "."]);
  await check("promises", [bin("oxlint"), "--tsconfig", "tsconfig.check.json"]);
  await check("types and build", [bin("tsc"), "--build"]);
  await check("types of tests and tools", [bin("tsc"), "--noEmit", "-p", "tsconfig.check.json"]);
  await check("layers", node("tools/check-layers/src/main.ts"));
  await check("docs", node("tools/check-docs/src/main.ts"));
}
const files = globSync(["packages/*/src/**/*.test.ts", "tools/*/src/**/*.test.ts"], {
  cwd: root,
  exclude: (name) => name === "node_modules",
});
await tests("unit and integration", files.filter(isWanted).sort(), 2);
await endToEnd(globSync("e2e/**/*.test.ts", { cwd: root }).filter(isWanted).sort());

console.log(`all of it took ${((performance.now() - start) / 1000).toFixed(0)} s`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);

function isWanted(file: string): boolean {
  return paths.length === 0 || paths.some((path) => file === path || file.startsWith(`${path}/`));
}

async function check(name: string, command: string[]): Promise<boolean> {
  const passed = (await runStep(name, command)) === 0;
  total[passed ? "passed" : "failed"]++;
  return passed;
}

async function tests(name: string, selected: string[], concurrency: number, env: Record<string, string> = {}): Promise<void> {
  if (selected.length === 0) return;
  const counts = join(root, ".cox", "test-counts.json");
  mkdirSync(dirname(counts), { recursive: true });
  rmSync(counts, { force: true });
  const command = node(
    "--test",
    `--test-concurrency=${concurrency}`,
    // It ends a test that hangs; one that works may have a machine much slower than ours.
    `--test-timeout=${long ? 3_600_000 : 900_000}`,
    `--test-reporter=${join(root, "tools/run-tests/src/reporter.ts")}`,
    ...selected,
  );
  const code = await runStep(name, command, { COX_TEST_COUNTS: counts, ...(long && { COX_TEST_LONG: "1" }), ...env });
  const seen = existsSync(counts)
    ? (JSON.parse(readFileSync(counts, "utf8")) as { passed: number; failed: number })
    : { passed: 0, failed: 0 };
  total.passed += seen.passed;
  total.failed += seen.failed;
  if (code !== 0 && seen.failed === 0) total.failed++; // the runner itself failed
}

/** One cluster for all end-to-end tests; it is taken down whatever happens. */
async function endToEnd(selected: string[]): Promise<void> {
  if (selected.length === 0) return;
  if (process.getuid?.() !== 0) {
    console.log("the end-to-end tests need root for containers: not run");
    return;
  }
  const cluster = (...verb: string[]): string[] => node("tools/dev-cluster/src/main.ts", ...verb);
  await runStep("clean up after an earlier run", cluster("down", "--purge"), e2eEnv);
  try {
    const built = paths.length === 0 || (await runStep("build", [bin("tsc"), "--build"])) === 0;
    if (built) await runStep("compile ahead", node("tools/dev-cluster/src/compile-ahead.ts"));
    const isUp = built && (await runStep("start a cluster", cluster("up"), e2eEnv)) === 0;
    total[isUp ? "passed" : "failed"]++;
    if (isUp) await tests("end to end", selected, 1, e2eEnv);
  } finally {
    const removed = (await runStep("remove the cluster", cluster("down"), e2eEnv)) === 0;
    total[removed ? "passed" : "failed"]++;
  }
}

function runStep(name: string, [command = "", ...rest]: string[], env: Record<string, string> = {}): Promise<number> {
  console.log(`== ${name}`);
  const begin = performance.now();
  const child = spawn(command, rest, { cwd: root, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...env } });
  return new Promise((resolve) => {
    const end = (code: number): void => {
      console.log(`== ${name}: ${code === 0 ? "ok" : "FAILED"} after ${((performance.now() - begin) / 1000).toFixed(1)} s`);
      resolve(code);
    };
    child.once("error", (err) => {
      console.log(`${command}: ${err.message}`);
      end(1);
    });
    child.once("exit", (code) => end(code ?? 1));
  });
}
