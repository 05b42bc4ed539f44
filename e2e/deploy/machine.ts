import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { releaseFiles } from "@coxswain/deploy/release";
import { unpack } from "@coxswain/deploy/testing/unpack";
import { need } from "@coxswain/dev-cluster/commands";
import { findKubectl } from "@coxswain/dev-cluster/kubectl";
import { localImages } from "@coxswain/images/busybox";
import { imageArchive } from "@coxswain/images/oci";
import { debianFolder } from "../framework/debian.ts";
import { settings } from "../framework/kubectl.ts";
import type { MachineDisk } from "./machine-disk.ts";

/** A machine in separate namespaces with the real systemd as process 1 and a release of Coxswain installed. */
export interface Machine {
  /** Runs a program in the machine. @throws Error with its output when the exit code is not 0 */
  run(program: string, ...args: string[]): Promise<string>;
  /** Runs a script of sh in the machine, until its first command that fails. @throws Error as `run` */
  shell(script: string): Promise<string>;
  /** Runs the host's kubectl with the machine's kubeconfig. */
  kubectl(kubeconfig: string, ...args: string[]): Promise<string>;
  /** Writes a file in the machine. */
  write(path: string, content: string): Promise<void>;
  /** A path in the machine as `kubectl`, which runs outside, sees it. */
  path(path: string): string;
  /** Before a program of the host: runs it in the machine's network. */
  readonly inNetwork: readonly string[];
  /** Limits what it writes to its disk. @param writesPerSecond 0: no limit */
  limitDisk(writesPerSecond: number): void;
  kill(): Promise<void>;
}

const execute = promisify(execFile);
const namespaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];

/** @returns the reason why machines cannot be created here; undefined when they can. */
export function whyNoMachine(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  if (!existsSync("/lib/systemd/systemd")) return "systemd is not installed";
  if (!canDivideCgroups()) return "the cgroup of this process cannot be divided";
  try {
    execFileSync("unshare", [...namespaces, "--fork", "true"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "namespaces cannot be made here";
  }
}

/** With cgroup v2: whether the root cgroup can delegate its controllers. In a container with processes in its root it cannot. */
function canDivideCgroups(): boolean {
  const file = "/sys/fs/cgroup/cgroup.subtree_control";
  return !existsSync(file) || readFileSync(file, "utf8").includes("memory");
}

export interface MachineOptions {
  /** Units that start with the machine. */
  readonly units: readonly string[];
  /** One of several, on which the release is only unpacked; undefined: alone, installed as docs/installing.md says. */
  readonly among?: Neighbour;
  /** Is removed with the machine; undefined: all is in memory. */
  readonly disk?: MachineDisk;
  /** Adds files to the release, which is `/opt/coxswain` in the machine; `images` is a folder of busybox archives. */
  readonly prepare?: (release: string) => Promise<void>;
}

/** A machine among others. */
export interface Neighbour {
  readonly name: string;
  readonly address: string;
  /** Name of a network namespace with the bridge `lan`. */
  readonly lan: string;
  /** An unpacked release, which machines can share: they do not write to it. */
  readonly release: string;
}

/** Unpacks a release with images for pods. */
export async function unpackRelease(folder: string): Promise<void> {
  unpack(await releaseFiles(settings.root), folder);
  mkdirSync(join(folder, "images"));
  for (const [i, image] of localImages(need("busybox", "busybox-static")).entries()) {
    writeFileSync(join(folder, "images", `${i}.tar`), imageArchive(image));
  }
}

let booted = 0;

/** In the machine, `/opt/debian` is the folder of `framework/debian.ts`. */
export async function bootMachine({ units, among, disk, prepare }: MachineOptions): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), "cox-machine-"));
  const release = among?.release ?? join(folder, "release");
  const scratch = join(folder, "scratch");
  mkdirSync(scratch);
  if (among === undefined) await unpackRelease(release);
  await prepare?.(release);
  const cgroups = newCgroups(`cox-machine-${process.pid}-${++booted}`);
  const script = join(import.meta.dirname, "machine.sh");
  let output = "";
  // The shell enters the cgroups before its namespaces are created, so that they are the roots of the cgroup namespace.
  const enter = 'for folder in $1; do echo $$ >"$folder/cgroup.procs"; done; shift; exec unshare "$@"';
  const child = spawn(
    "sh",
    [
      "-c",
      enter,
      "sh",
      cgroups.join(" "),
      ...namespaces,
      "--fork",
      "--kill-child",
      script,
      release,
      scratch,
      debianFolder,
      units.join(" "),
      ...(among === undefined ? ["", "", ""] : [among.name, among.address, among.lan]),
      disk?.folder ?? "",
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await waitFor(() => removeCgroups(cgroups), { timeoutMs: 180_000, what: "the machine's processes to be gone" });
    await disk?.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const pid = await waitFor(() => systemdOf(child), { timeoutMs: 180_000, what: `systemd to run; ${output}` });
    const enter = async (into: readonly string[], command: readonly string[]): Promise<string> =>
      (await execute("nsenter", ["-t", pid, ...into, ...command], { timeout: 240_000, killSignal: "SIGKILL" })).stdout;
    const program = await findKubectl(settings);
    const run = (...command: string[]) => enter(["-m", "-p", "-n", "-u", "-i", "-C"], command);
    // systemd runs for a moment before it accepts systemctl and systemd-run.
    await waitFor(() => succeeds(run("systemctl", "show", "--property=Version")), {
      timeoutMs: 180_000,
      what: "systemd to listen",
    });
    const path = (inside: string): string => `/proc/${pid}/root${inside}`;
    return {
      run,
      shell: (script) => run("sh", "-ec", script),
      path,
      inNetwork: ["nsenter", "-t", pid, "-n"],
      limitDisk: (writesPerSecond) => disk?.limit(cgroups, writesPerSecond),
      write: async (inside, content) => writeFileSync(path(inside), content),
      kubectl: (kubeconfig, ...args) => enter(["-n"], [program, `--kubeconfig=${path(kubeconfig)}`, ...args]),
      kill,
    };
  } catch (err) {
    await kill();
    throw new Error(`the machine did not boot: ${output}`, { cause: err });
  }
}

/** A machine that has just booted has started containerd, which may not listen yet. */
export const untilContainerdListens = (machine: Machine): Promise<unknown> =>
  waitFor(() => succeeds(machine.run("ctr", "version")), { timeoutMs: 180_000, what: "containerd to listen" });

/** Imports the images of test pods into the machine's containerd. */
export async function importImages(machine: Machine): Promise<void> {
  await untilContainerdListens(machine);
  for (const i of localImages(need("busybox", "busybox-static")).keys()) {
    await machine.run("ctr", "-n", "k8s.io", "images", "import", `/opt/coxswain/images/${i}.tar`);
  }
}

const succeeds = (command: Promise<unknown>): Promise<boolean> =>
  command.then(
    () => true,
    () => false,
  );

/** The child process of unshare, after it has executed systemd. */
function systemdOf(unshare: ChildProcess): string | undefined {
  if (unshare.exitCode !== null) throw new Error(`it ended with ${unshare.exitCode}`);
  const pid = readFileSync(`/proc/${unshare.pid}/task/${unshare.pid}/children`, "utf8").trim();
  return pid !== "" && readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "systemd" ? pid : undefined;
}

/**
 * One cgroup per hierarchy, to stay apart from the host's systemd. They are children of this process's cgroup; with v2, of the
 * root, because a cgroup with processes cannot delegate controllers.
 */
function newCgroups(name: string): string[] {
  const lines = readFileSync("/proc/self/cgroup", "utf8").trim().split("\n");
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  return lines.flatMap((line) => {
    const [, controllers = "", ...path] = line.split(":");
    const mount = mounts.find(([, , type, options = ""]) =>
      controllers === "" ? type === "cgroup2" : type === "cgroup" && `,${options},`.includes(`,${controllers},`),
    );
    if (mount === undefined) return [];
    const folder = join(mount[1] as string, controllers === "" ? "" : path.join(":"), name);
    mkdirSync(folder, { recursive: true });
    if (controllers === "cpuset") {
      for (const file of ["cpuset.cpus", "cpuset.mems"]) {
        writeFileSync(join(folder, file), readFileSync(join(dirname(folder), file)));
      }
    }
    return [folder];
  });
}

function removeCgroups(cgroups: readonly string[]): boolean {
  try {
    for (const folder of cgroups.filter(existsSync)) {
      const below = globSync("**/", { cwd: folder }).sort((a, b) => b.length - a.length);
      for (const path of below) rmdirSync(join(folder, path));
      rmdirSync(folder);
    }
    return true;
  } catch {
    return false; // a process in it is still exiting
  }
}
