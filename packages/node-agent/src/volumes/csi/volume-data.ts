import { readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/**
 * `vol_data.json` beside a mount: what a restarted kubelet needs in order to unmount the volume.
 * Source: pkg/volume/csi/csi_util.go
 */
interface VolumeData {
  attachmentID?: string;
  driverName: string;
  nodeName?: string;
  /** Name of the persistent volume, or of the Pod's volume. */
  specVolID?: string;
  volumeHandle: string;
  volumeLifecycleMode?: string;
}

const fileName = "vol_data.json";

/** Writes `vol_data.json`; creates the directory if necessary. */
export async function saveVolumeData(dir: string, data: VolumeData): Promise<void> {
  await makeFolder(dir, 0o750);
  const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const path = join(dir, fileName);
  // Written atomically: the agent may be killed at any time.
  await writeFile(`${path}.tmp`, `${JSON.stringify(sorted)}\n`, { mode: 0o640 });
  await rename(`${path}.tmp`, path);
}

/** @returns undefined when the file does not exist */
export async function loadVolumeData(dir: string): Promise<VolumeData | undefined> {
  let text: string;
  try {
    text = await readFile(join(dir, fileName), "utf8");
  } catch (err) {
    if (errorCode(err) === "ENOENT") return undefined;
    throw err;
  }
  try {
    return JSON.parse(text) as VolumeData; // cast: written by `saveVolumeData`, or by upstream's kubelet in the same form
  } catch (err) {
    throw new Error(`failed to parse volume data file [${join(dir, fileName)}]: ${messageOf(err)}`);
  }
}

/** Removes the file and its directory. @throws Error when the directory contains anything else */
export async function removeVolumeData(dir: string): Promise<void> {
  await rm(join(dir, fileName), { force: true });
  await rm(join(dir, `${fileName}.tmp`), { force: true });
  await removeFolder(dir);
}

/** Removes a directory if it exists. @throws Error when it is not empty */
export async function removeFolder(dir: string): Promise<void> {
  await rmdir(dir).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== "ENOENT") throw new Error(`failed to remove dir [${dir}]: ${err.message}`);
  });
}
