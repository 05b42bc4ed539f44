import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { busyboxFiles, type ImageSpec, writeImageArchive } from "./image-archive.ts";

const run = promisify(execFile);

export interface RunningContainerd {
  socket: string;
  dir: string;
  pid: number;
  log(): Promise<string>;
  /** Stops all containers, containerd and its shims, unmounts and removes the directory. */
  stop(): Promise<void>;
}

const pauseImage = "registry.test/pause:1";
export const busyboxImage = "registry.test/busybox:1";

/**
 * Starts a private containerd with two images (pause, busybox) and its own bridge network, isolated from the machine's.
 * Needs root, containerd, runc and the CNI plugins in /usr/lib/cni or /opt/cni/bin.
 */
export async function startContainerd(
  options: { subnet?: string; images?: readonly ImageSpec[] } = {},
): Promise<RunningContainerd> {
  const dir = await mkdtemp(join(tmpdir(), "cox-containerd-"));
  const runDir = await mkdtemp("/run/cox-");
  const socket = join(runDir, "containerd.sock");
  const id = runDir.slice("/run/cox-".length).toLowerCase();
  const octet = 1 + (process.pid % 250);
  const subnet = options.subnet ?? `10.233.${octet}.0/24`;
  const bridge = `cox${id}`.slice(0, 15);
  await mkdir(join(dir, "net.d"));
  await writeFile(
    join(dir, "net.d", "10-test.conflist"),
    JSON.stringify({
      cniVersion: "0.3.1",
      name: `test-${id}`,
      plugins: [
        {
          type: "bridge",
          bridge,
          isGateway: true,
          ipMasq: false,
          ipam: { type: "host-local", dataDir: join(dir, "ipam"), ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }] },
        },
        { type: "portmap", capabilities: { portMappings: true }, snat: false },
      ],
    }),
  );
  await writeFile(
    join(dir, "config.toml"),
    `version = 2
root = "${dir}/root"
state = "${runDir}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "${socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  # In /run/netns they would be busy for good once a program such as "ip netns add" mounts that folder over itself.
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${dir}/net.d"
`,
  );
  const logFile = join(dir, "containerd.log");
  const child = spawn("containerd", ["--config", join(dir, "config.toml")], { stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(logFile);
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const running: RunningContainerd = {
    socket,
    dir,
    pid: child.pid ?? 0,
    log: () => readFile(logFile, "utf8"),
    stop: () => stop(child, socket, dir, runDir, bridge),
  };
  try {
    await untilServing(socket, child);
    const archive = join(dir, "images.tar");
    const files = await busyboxFiles();
    await writeImageArchive(archive, [
      { name: pauseImage, entrypoint: ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done"], files },
      { name: busyboxImage, cmd: ["sh"], files },
      ...(options.images ?? []),
    ]);
    await ctr(socket, "images", "import", archive);
    await rm(archive);
  } catch (err) {
    const text = await running.log();
    await running.stop();
    throw new Error(`containerd did not start:\n${text.slice(-3000)}`, { cause: err });
  }
  return running;
}

/** True when run as root with the required binaries and a busybox to build images from. */
export async function canRunContainerd(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  try {
    await Promise.all(["containerd", "runc", "ctr"].map((name) => run(name, ["--version"])));
    await Promise.all(["/usr/lib/cni/bridge", "/bin/busybox"].map((path) => access(path)));
    return true;
  } catch {
    return false;
  }
}

/** Runs `ctr` in the namespace of the CRI. */
export function ctr(socket: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run("ctr", ["-a", socket, "-n", "k8s.io", ...args], { maxBuffer: 16 * 1024 * 1024 });
}

async function untilServing(socket: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 120_000; // loading the plugins from a cold disk is slow
  for (;;) {
    if (child.exitCode !== null) throw new Error(`containerd exited with ${child.exitCode}`);
    try {
      await ctr(socket, "images", "ls", "-q");
      return;
    } catch (err) {
      if (Date.now() > deadline) throw err;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

async function stop(child: ChildProcess, socket: string, dir: string, runDir: string, bridge: string): Promise<void> {
  const quietly = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch {
      // already gone
    }
  };
  // Shims outlive containerd: stop the tasks while containerd still responds.
  try {
    const { stdout } = await ctr(socket, "tasks", "ls", "-q");
    for (const id of stdout.split("\n").filter((line) => line !== "")) {
      await quietly(ctr(socket, "tasks", "kill", "-s", "SIGKILL", id));
      await quietly(ctr(socket, "tasks", "rm", "-f", id));
    }
  } catch {
    // containerd is gone: its shims are killed below
  }
  if (child.exitCode === null && child.pid !== undefined) {
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await exited;
    clearTimeout(timer);
  }
  for (const pid of await shimsOf(socket)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // already exited
    }
  }
  const mounts = (await readFile("/proc/self/mountinfo", "utf8")).split("\n").map((line) => line.split(" ")[4] ?? "");
  const ours = mounts.filter((path) => path.startsWith(dir) || path.startsWith(runDir));
  for (const path of ours.reverse()) await quietly(run("umount", ["-l", path]));
  await quietly(run("ip", ["link", "del", bridge]));
  // A killed shim may still be writing: retry while directories are not empty.
  for (const path of [dir, runDir]) await rm(path, { recursive: true, force: true, maxRetries: 10 });
}

/** PIDs of the shims of this containerd: their command lines contain its socket path. */
async function shimsOf(socket: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry));
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, i) => commands[i]?.includes("containerd-shim") && commands[i].includes(socket)).map(Number);
}
