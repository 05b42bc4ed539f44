import { open, stat } from "node:fs/promises";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { VolumePlugin } from "./volume-plugin.ts";

/** A file or directory of the host. Source: pkg/volume/hostpath */
export const hostPath: VolumePlugin = {
  name: "kubernetes.io~host-path",
  supports: (volume) => volume.hostPath !== undefined,
  async setUp({ volume }) {
    const { path = "", type = "" } = volume.hostPath ?? {};
    await checkHostPath(path, type);
    return { path, readOnly: false };
  },
};

/** Creates the path for the `…OrCreate` types. @throws Error when the path is not of the given type */
export async function checkHostPath(path: string, type: string): Promise<void> {
  if (type === "") return;
  const info = await stat(path).catch(() => undefined);
  const fail = (what: string): never => {
    throw new Error(`hostPath type check failed: ${path} is not ${what}`);
  };
  switch (type) {
    case "DirectoryOrCreate":
      if (info === undefined) await makeFolder(path, 0o755);
      else if (!info.isDirectory()) fail("a directory");
      return;
    case "Directory":
      if (!info?.isDirectory()) fail("a directory");
      return;
    case "FileOrCreate":
      if (info === undefined) await (await open(path, "a", 0o644)).close();
      else if (!info.isFile()) fail("a file");
      return;
    case "File":
      if (!info?.isFile()) fail("a file");
      return;
    case "Socket":
      if (!info?.isSocket()) fail("a socket file");
      return;
    case "CharDevice":
      if (!info?.isCharacterDevice()) fail("a character device");
      return;
    case "BlockDevice":
      if (!info?.isBlockDevice()) fail("a block device");
      return;
    default:
      throw new Error(`${type} is an invalid volume type`);
  }
}
