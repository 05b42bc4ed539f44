import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { flock } from "@coxswain/dev-cluster/lock";
import pins from "./debian-packages.json" with { type: "json" };
import { settings } from "./kubectl.ts";

/**
 * A pinned package version. When Debian has replaced it, update version and hash from `apt-cache show <package>` (Version,
 * SHA256).
 */
interface Pin {
  /** Default: the key of the entry. */
  readonly package?: string;
  /** Codename of the Debian release. */
  readonly release: string;
  readonly version: string;
  /** Hash of the archive by architecture, or `all`. */
  readonly sha256: Readonly<Partial<Record<string, string>>>;
}
export type DebianPackage = keyof typeof pins;

type Run = (program: string, ...args: string[]) => string;

/** Folder of unpacked packages, each in a subfolder. */
export const debianFolder = join(settings.root, ".cox", "debian");

const runIn =
  (cwd: string): Run =>
  (program, ...args) =>
    execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/**
 * Downloads and unpacks a Debian package without dependencies and without installing it; for programs that only need the C
 * library. The archive is kept, and verified against its pin at each use. Waits while another process does the same.
 * @returns the folder that corresponds to `/`
 * @throws Error when the pinned version is not available
 */
export function unpackedPackage(name: DebianPackage): string {
  mkdirSync(debianFolder, { recursive: true });
  // Test files run in parallel: two that unpacked the same package would remove it from under each other.
  const lock = openSync(join(debianFolder, "lock"), "a");
  try {
    flock(lock, { waits: true });
    return unpackIfMissing(name);
  } finally {
    closeSync(lock);
  }
}

function unpackIfMissing(name: DebianPackage): string {
  const pin: Pin = pins[name];
  const target = join(debianFolder, name);
  const archive = `${target}.deb`;
  const sha256 = pin.sha256["all"] ?? pin.sha256[architecture()];
  if (sha256 === undefined) throw new Error(`${name} is not pinned for ${architecture()}: e2e/framework/debian-packages.json`);
  const unpackedFrom = `${target}.sha256`;
  const isKept = existsSync(archive) && hashOf(archive) === sha256;
  if (isKept && existsSync(target) && existsSync(unpackedFrom) && readFileSync(unpackedFrom, "utf8") === sha256) return target;
  const scratch = mkdtempSync(join(debianFolder, "fetch-"));
  try {
    if (!isKept) copyFileSync(download(scratch, pin.package ?? name, pin, sha256), archive);
    runIn(scratch)("dpkg-deb", "--extract", archive, "files");
    rmSync(target, { recursive: true, force: true });
    renameSync(join(scratch, "files"), target);
    writeFileSync(unpackedFrom, sha256);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}

const architecture = (): string => execFileSync("dpkg", ["--print-architecture"], { encoding: "utf8" }).trim();
const hashOf = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

/** @returns the path of the archive, with the expected hash */
function download(folder: string, name: string, { release, version }: Pin, sha256: string): string {
  const run = runIn(folder);
  const codename = /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  try {
    if (codename === release) downloadHere(run, `${name}=${version}`);
    else downloadFrom(run, folder, `${name}=${version}`, release);
  } catch (err) {
    throw new Error(`cannot fetch Debian's ${name} ${version} of ${release}; has it been replaced? (debian-packages.json)`, {
      cause: err,
    });
  }
  const file = readdirSync(folder).find((each) => each.endsWith(".deb"));
  if (file === undefined) throw new Error(`apt-get downloaded no ${name}`);
  const found = hashOf(join(folder, file));
  if (found !== sha256)
    throw new Error(`Debian's ${name} ${version} has the SHA-256 ${found}, not ${sha256} (debian-packages.json)`);
  return join(folder, file);
}

/** Retries transient network failures. */
const patiently = ["-o", "Acquire::Retries=5"];

function downloadHere(run: Run, name: string): void {
  try {
    run("apt-get", ...patiently, "download", "-q", name);
  } catch {
    run("apt-get", ...patiently, "update", "-q"); // package lists may be missing or outdated
    run("apt-get", ...patiently, "download", "-q", name);
  }
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** Downloads from this machine's mirror with separate package lists, without changing those of the machine. */
function downloadFrom(run: Run, scratch: string, name: string, release: string): void {
  const [site] = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main").split("\n");
  if (!site) throw new Error("this machine has no source of packages");
  for (const part of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(scratch, part), { recursive: true });
  writeFileSync(join(scratch, "sources.list"), `deb [signed-by=${keyring}] ${site} ${release} main\n`);
  const own = [
    `Dir::State::lists=${join(scratch, "lists")}`,
    `Dir::Cache=${join(scratch, "cache")}`,
    `Dir::Etc::sourcelist=${join(scratch, "sources.list")}`,
    "Dir::Etc::sourceparts=-",
  ].flatMap((option) => ["-o", option]);
  own.push(...patiently);
  run("apt-get", ...own, "update", "-q");
  run("apt-get", ...own, "download", "-q", name);
}
