import { readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";

/**
 * `vol_data.json` beside a mount: what the agent, also one that starts anew, has to know to take it away again.
 * Source: pkg/volume/csi/csi_util.go
 */
export interface VolumeData {
  attachmentID?: string;
  driverName: string;
  nodeName?: string;
  /** Name of the persistent volume, or of the Pod's volume. */
  specVolID?: string;
  volumeHandle: string;
  volumeLifecycleMode?: string;
}

const fileName = "vol_data.json";

export async function saveVolumeData(dir: string, data: VolumeData): Promise<void> {
  await makeFolder(dir, 0o750);
  const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const path = join(dir, fileName);
  // All of it or nothing: an agent may be killed at any moment.
  await writeFile(`${path}.tmp`, `${JSON.stringify(sorted)}\n`, { mode: 0o640 });
  await rename(`${path}.tmp`, path);
}

/** @returns undefined when there is none */
export async function loadVolumeData(dir: string): Promise<VolumeData | undefined> {
  let text: string;
  try {
    text = await readFile(join(dir, fileName), "utf8");
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw err;
  }
  try {
    return JSON.parse(text) as VolumeData;
  } catch (err) {
    throw new Error(`failed to parse volume data file [${join(dir, fileName)}]: ${(err as Error).message}`);
  }
}

/** Takes the file and its folder away. @throws Error when something else is in it */
export async function removeVolumeData(dir: string): Promise<void> {
  await rm(join(dir, fileName), { force: true });
  await rm(join(dir, `${fileName}.tmp`), { force: true });
  await removeFolder(dir);
}

/** @throws Error when it is not empty */
export async function removeFolder(dir: string): Promise<void> {
  await rmdir(dir).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== "ENOENT") throw new Error(`failed to remove dir [${dir}]: ${err.message}`);
  });
}
