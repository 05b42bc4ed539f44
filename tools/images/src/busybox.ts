import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { ImageSpec } from "./oci.ts";
import type { TarEntry } from "./tar.ts";

export const pauseImage = "coxswain.local/pause:3.6";
const busyboxImages: readonly string[] = ["docker.io/library/busybox:1.35", "docker.io/library/busybox:1.36"];

/**
 * The pause container: keeps the pod's namespaces alive, reaps orphans of a shared process namespace (`wait`), and exits
 * immediately on SIGTERM and SIGINT.
 */
const pauseScript = "trap 'exit 0' TERM INT; while :; do sleep 2147483647 & wait $!; done";

/** Images built from the machine's statically linked busybox, without a registry. */
export function localImages(busyboxPath: string): ImageSpec[] {
  const own = readFileSync(busyboxPath);
  const wget = wgetWithTimeouts(own);
  const program = wget?.program ?? own;
  const shell: TarEntry[] = [
    { type: "folder", path: "bin" },
    { type: "file", path: "bin/busybox", content: program, mode: 0o755 },
  ];
  const labels = {
    "org.opencontainers.image.title": "busybox of this machine",
    "org.opencontainers.image.version": versionOf(busyboxPath),
    "org.opencontainers.image.description": "Made by Coxswain from this machine's own busybox; not the image of the registry.",
  };
  return [
    {
      names: [pauseImage],
      layer: [...shell, { type: "symlink", path: "bin/sleep", target: "busybox" }],
      entrypoint: ["/bin/busybox", "sh", "-c", pauseScript],
    },
    ...busyboxImages.map((name) => ({
      names: [name],
      layer: [...shell, ...withWget(rootFilesystem(applets(busyboxPath)), wget?.script), release(name, busyboxPath)],
      command: ["sh"],
      labels,
    })),
  ];
}

/** Paths of all applets as installed by busybox: `bin/sh`, `usr/bin/awk`. */
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

/** First line of the help: `BusyBox v1.35.0 (Debian 1:1.35.0-4)` */
function versionOf(busyboxPath: string): string {
  const first = execFileSync(busyboxPath, ["--help"], { encoding: "utf8" }).split("\n")[0] ?? "";
  return first.replace(/ multi-call binary\.?$/, "");
}

/** Makes the images of two tags differ, and records the version of busybox. */
function release(name: string, busyboxPath: string): TarEntry {
  return { type: "file", path: "etc/busybox-release", content: Buffer.from(`${name}\n${versionOf(busyboxPath)}\n`) };
}

function withWget(entries: readonly TarEntry[], script: string | undefined): TarEntry[] {
  if (script === undefined) return [...entries];
  const wget: TarEntry = { type: "file", path: "usr/bin/wget", content: Buffer.from(script), mode: 0o755 };
  return entries.map((entry) => (entry.path === wget.path ? wget : entry));
}

const before = Buffer.from("\0wc\0wget\0which\0");
const after = Buffer.from("\0wc\0wgeT\0which\0");
/** wget's option string in builds without timeouts: -T is accepted but its variable is missing. */
const options = Buffer.from("cqSO:o:P:Y:U:T:+t:n::");

/**
 * Workaround for busybox of Debian 12 (before 1.36.1-5), built without CONFIG_FEATURE_WGET_TIMEOUT: its wget crashes with -T. The
 * shell prefers applets to programs, so a wrapper script alone would not be found: the applet is renamed in the binary, and a
 * script takes its place and runs it under `timeout`.
 * @returns undefined when wget needs no workaround, or the binary is not as expected
 */
export function wgetWithTimeouts(own: Buffer): { program: Buffer; script: string } | undefined {
  const at = own.indexOf(before);
  if (at < 0 || !own.includes(options) || own.includes("Network read timeout")) return undefined;
  const program = Buffer.from(own);
  after.copy(program, at);
  return { program, script: wgetScript };
}

/** -T limits the whole download, not each read. */
const wgetScript = `#!/bin/sh
# This machine's busybox was built without CONFIG_FEATURE_WGET_TIMEOUT: -T is a limit for all of the download here.
limit=
count=$#
while [ "$count" -gt 0 ]; do
  arg=$1
  shift
  count=$((count - 1))
  takes=
  case $arg in
    --timeout=*) limit=\${arg#*=}; continue ;;
    --timeout) takes=limit ;;
    -T*) limit=\${arg#-T}; [ -n "$limit" ] && continue; takes=limit ;;
    -[cqS]*T*)
      flags=\${arg%%T*}
      case \${flags#-} in
        *[!cqS]*) set -- "$@" "$arg"; continue ;;
      esac
      set -- "$@" "$flags"
      limit=\${arg#*T}
      [ -n "$limit" ] && continue
      takes=limit
      ;;
    -O | -o | -P | -U | -Y | -t | --header | --post-data | --post-file) takes=value ;;
  esac
  if [ -z "$takes" ]; then
    set -- "$@" "$arg"
    continue
  fi
  [ "$count" -gt 0 ] || { echo "wget: option requires an argument -- '$arg'" >&2; exit 1; }
  value=$1
  shift
  count=$((count - 1))
  if [ $takes = limit ]; then limit=$value; else set -- "$@" "$arg" "$value"; fi
done
case $limit in
  "" | 0) exec wgeT "$@" ;;
  *[!0-9]*) echo "wget: invalid number '$limit'" >&2; exit 1 ;;
esac
timeout "$limit" wgeT "$@"
code=$?
[ $code -ne 143 ] || { echo "wget: download timed out" >&2; exit 1; }
exit $code
`;
