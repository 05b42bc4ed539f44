import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { ImageSpec } from "./oci.ts";
import type { TarEntry } from "./tar.ts";

export const pauseImage = "coxswain.local/pause:3.6";
const busyboxImages: readonly string[] = ["docker.io/library/busybox:1.35", "docker.io/library/busybox:1.36"];

/**
 * Holds a pod's namespaces open: waits for children, so that orphans of a shared process namespace are reaped, and
 * ends at once when it is asked to.
 */
const pauseScript = "trap 'exit 0' TERM INT; while :; do sleep 2147483647 & wait $!; done";

/** The images that a machine can make of its own statically linked busybox; no registry is asked. */
export function localImages(busyboxPath: string): ImageSpec[] {
  const program = readFileSync(busyboxPath);
  const shell: TarEntry[] = [
    { type: "folder", path: "bin" },
    { type: "file", path: "bin/busybox", content: program, mode: 0o755 },
  ];
  return [
    {
      names: [pauseImage],
      layer: [...shell, { type: "symlink", path: "bin/sleep", target: "busybox" }],
      entrypoint: ["/bin/busybox", "sh", "-c", pauseScript],
    },
    ...busyboxImages.map((name) => ({
      names: [name],
      layer: [...shell, ...rootFilesystem(applets(busyboxPath)), release(name)],
      command: ["sh"],
    })),
  ];
}

/** Paths of all applets as busybox itself would install them: `bin/sh`, `usr/bin/awk`. */
function applets(busyboxPath: string): string[] {
  const listed = execFileSync(busyboxPath, ["--list-full"], { encoding: "utf8" }).split("\n");
  return [...new Set(listed)].filter((path) => path !== "" && path !== "bin/busybox").sort();
}

function rootFilesystem(links: readonly string[]): TarEntry[] {
  const folders = [
    "dev",
    "etc",
    "home",
    "proc",
    "root",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/sbin",
    "var",
    "var/log",
    "var/run",
    "var/spool",
    "var/www",
  ];
  const text = (path: string, content: string): TarEntry => ({ type: "file", path, content: Buffer.from(content) });
  return [
    ...folders.map((path): TarEntry => ({ type: "folder", path, mode: path === "tmp" ? 0o1777 : 0o755 })),
    ...links
      .filter((path) => /^(?:bin|sbin|usr\/bin|usr\/sbin)\/[^/]+$/.test(path))
      .map((path): TarEntry => ({ type: "symlink", path, target: "/bin/busybox" })),
    text(
      "etc/passwd",
      "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
    ),
    text("etc/group", "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nnogroup:x:65534:\n"),
  ];
}

/** What makes two tags two images; a file that tests may read. */
function release(name: string): TarEntry {
  return { type: "file", path: "etc/busybox-release", content: Buffer.from(`${name}\n`) };
}
