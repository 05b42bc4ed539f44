import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "./kubectl.ts";

type Run = (program: string, ...args: string[]) => string;

/** Where unpacked packages are, each in a folder of its own. */
export const debianFolder = join(settings.root, ".cox", "debian");

/**
 * The files of one of Debian's packages, without those it depends on and without installing anything: for programs that
 * need nothing but the C library.
 * @param release another release of Debian than this machine's: `trixie`
 * @returns the folder that stands for `/`
 */
export function unpackedPackage(name: string, release?: string): string {
  const folder = debianFolder;
  const target = join(folder, release === undefined ? name : `${name}-${release}`);
  if (existsSync(target)) return target;
  mkdirSync(folder, { recursive: true });
  const scratch = mkdtempSync(join(folder, "fetch-"));
  const run: Run = (program, ...args) =>
    execFileSync(program, args, { cwd: scratch, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  try {
    if (release === undefined) downloadHere(run, name);
    else downloadFrom(run, scratch, name, release);
    const archive = readdirSync(scratch).find((file) => file.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get downloaded no ${name}`);
    run("dpkg-deb", "--extract", archive, "files");
    renameSync(join(scratch, "files"), target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}

/** A mirror far away fails now and then. */
const patiently = ["-o", "Acquire::Retries=5"];

function downloadHere(run: Run, name: string): void {
  try {
    run("apt-get", ...patiently, "download", "-q", name);
  } catch {
    run("apt-get", ...patiently, "update", "-q"); // the lists may be missing or old
    run("apt-get", ...patiently, "download", "-q", name);
  }
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** From where this machine gets its packages, with lists of its own, so that the machine's stay as they are. */
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
  run("apt-get", ...own, "download", "-q", `${name}/${release}`);
}
