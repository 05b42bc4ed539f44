import { execFile } from "node:child_process";
import type { Mounter } from "./mount.ts";

/** Executes a program; resolves to its exit code and combined output. */
type RunTool = (program: string, args: readonly string[]) => Promise<{ code: number; output: string }>;

/** A block device to mount. */
interface DiskMount {
  readonly device: string;
  readonly target: string;
  /** Empty for ext4. */
  readonly fsType: string;
  readonly readOnly: boolean;
}

/**
 * Mounts a block device. An empty device is formatted first, others are checked with fsck.
 * @throws Error with upstream's message
 * Source: k8s.io/mount-utils mount_linux.go formatAndMount
 */
export async function formatAndMount(
  { device, target, fsType: wanted, readOnly }: DiskMount,
  mounter: Mounter,
  run: RunTool = runTool,
): Promise<void> {
  const fsType = wanted || "ext4";
  // Used in the program name `mkfs.<fsType>`.
  if (!/^[A-Za-z0-9_.-]+$/.test(fsType)) throw new Error(`${JSON.stringify(fsType)} is not a file system`);
  const access = readOnly ? "ro" : "rw";
  if (await isEmptyDisk(device, run)) {
    if (readOnly) throw new Error(`cannot mount unformatted disk ${device} as it is in read-only mode`);
    await format(device, fsType, target, run);
  } else if (!readOnly) await repair(device, run);
  await mounter.mount(device, target, { type: fsType, options: [access, "defaults"] });
}

async function isEmptyDisk(device: string, run: RunTool): Promise<boolean> {
  const { code, output } = await run("blkid", ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device]);
  if (code === noFormatFound) return true;
  if (code !== 0) throw new Error(`failed to get disk format of disk ${device}: exit status ${code}`);
  return !/^(TYPE|PTTYPE)=./m.test(output);
}

const noFormatFound = 2;

async function format(device: string, fsType: string, target: string, run: RunTool): Promise<void> {
  const options = fsType === "ext4" || fsType === "ext3" ? ["-F", "-m0"] : [];
  const { code, output } = await run(`mkfs.${fsType}`, [...options, device]);
  if (code === 0) return;
  const what = `type:("${fsType}") target:("${target}") options:("rw,defaults")`;
  throw new Error(`format of disk "${device}" failed: ${what} errcode:(exit status ${code}) output:(${output}) `);
}

/** Fails only when fsck leaves errors uncorrected; other failures are ignored. */
async function repair(device: string, run: RunTool): Promise<void> {
  const { code, output } = await run("fsck", ["-a", device]);
  if (code === errorsLeft) throw new Error(`'fsck' found errors on device ${device} but could not correct them: ${output}`);
}

const errorsLeft = 4;

const runTool: RunTool = (program, args) =>
  new Promise((resolve) => {
    execFile(program, args, (err, stdout, stderr) => {
      const code = typeof err?.code === "number" ? err.code : err === null ? 0 : -1;
      resolve({ code, output: `${stdout}${stderr}` });
    });
  });
