import { execFileSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { coxswainVersion } from "@coxswain/apimachinery/process/release";
import { need } from "@coxswain/dev-cluster/commands";
import { imageArchive } from "@coxswain/images/oci";
import type { TarEntry } from "@coxswain/images/tar";
import { releaseFiles } from "./release.ts";
import { withFolders } from "./with-folders.ts";

/** Programs called by the daemons and the compose file, with their Debian packages; keep in sync with `Dockerfile`. */
const programs: Readonly<Record<string, string>> = {
  etcd: "etcd-server",
  mount: "mount",
  umount: "mount",
  prlimit: "util-linux",
  flock: "util-linux",
  iptables: "iptables",
  "iptables-save": "iptables",
  "iptables-restore": "iptables",
  ip6tables: "iptables",
  "ip6tables-save": "iptables",
  "ip6tables-restore": "iptables",
  conntrack: "conntrack",
  bridge: "iproute2",
  ip: "iproute2",
  rm: "coreutils", // busybox's has no --one-file-system
  busybox: "busybox-static",
};
const applets = ["sh", "cat", "ls", "readlink", "sleep"];
/** Plugins that iptables loads for matches and targets. */
const extensions = "/usr/lib/*/xtables/*.so";

/**
 * Builds an image of the release from a few files of this machine's Debian, for `docker load` and `ctr images import`; no
 * registry is used.
 * @param names additional full references besides `docker.io/library/coxswain:<version>`, such as those of upstream's images, so
 * that existing manifests can be used unchanged
 * @returns the path of the archive, `<out>/coxswain-image.tar`
 * @throws Failure when a program is missing
 */
export async function writeImage(root: string, out: string, names: readonly string[] = []): Promise<string> {
  const release = ofRelease(await releaseFiles(root));
  const found = Object.entries(programs).map(([name, from]) => ({ name, path: need(name, from) }));
  const loaded = globSync(extensions);
  const libraries = new Set([...found.map(({ path }) => path), ...loaded, process.execPath].flatMap(librariesOf));
  const files: TarEntry[] = [
    ...release,
    ...found.map(({ name, path }) => copy(`usr/bin/${name}`, path, 0o755)),
    ...applets.map((name) => link(`usr/bin/${name}`, "busybox")),
    ...[...libraries, ...loaded].map((path) => copy(path.replace(/^\/(?:usr\/)?/, "usr/"), path, 0o755)),
    ...["bin", "lib", "lib64", "sbin"].map((name) => link(name, `usr/${name}`)),
    text("opt/coxswain/image", "The node of a kubelet in here is outside.\n"),
    text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    text("etc/group", "root:x:0:\n"),
    text("etc/os-release", readFileSync("/etc/os-release", "utf8")),
  ];
  const empty = ["proc", "root", "run", "sys", "usr/lib64", "usr/sbin", "var/lib"].map(
    (path): TarEntry => ({ type: "folder", path }),
  );
  const layer = withFolders([...files, { type: "folder", path: "tmp", mode: 0o1777 } as const, ...empty].sort(byPath));
  const archive = join(out, "coxswain-image.tar");
  makeFolderSync(out);
  const all = [`docker.io/library/coxswain:${coxswainVersion}`, ...names];
  writeFileSync(archive, imageArchive({ names: all, layer, command: ["coxswain"] }));
  return archive;
}

const link = (path: string, target: string): TarEntry => ({ type: "symlink", path, target });

/** The files of a release that are in an image: programs, also on the PATH, with their code and licences. */
export function ofRelease(entries: readonly TarEntry[]): TarEntry[] {
  const release = entries.filter(({ path }) => /^(?:bin|lib|libexec|licences)\//.test(path));
  return [
    ...release.map((entry) => ({ ...entry, path: `opt/coxswain/${entry.path}` })),
    ...release.filter(({ path }) => path.startsWith("bin/")).map(({ path }) => link(`usr/${path}`, `/opt/coxswain/${path}`)),
  ];
}

/** Shared libraries of a program or library, by ldd; empty for static ones. */
function librariesOf(path: string): string[] {
  try {
    const listed = execFileSync("ldd", [path], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return [...listed.matchAll(/(?:=>\s+|^\s*)(\/\S+) \(0x/gm)].map(([, library = ""]) => library);
  } catch {
    return [];
  }
}

const copy = (path: string, from: string, mode: number): TarEntry => ({ type: "file", path, content: readFileSync(from), mode });
const text = (path: string, content: string): TarEntry => ({ type: "file", path, content: Buffer.from(content) });
const byPath = (a: TarEntry, b: TarEntry): number => (a.path < b.path ? -1 : 1);
