import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

export interface ImageSpec {
  /** Full reference: `docker.io/library/busybox:1.36`. */
  name: string;
  entrypoint?: readonly string[];
  cmd?: readonly string[];
  user?: string;
  files: readonly ArchiveEntry[];
}

interface ArchiveEntry {
  path: string;
  mode?: number;
  /** Omitted for a directory. */
  content?: Buffer | string;
  linkTo?: string;
}

/** Writes an archive in the format of `docker save`, for `ctr images import`. */
export async function writeImageArchive(file: string, images: readonly ImageSpec[]): Promise<void> {
  const entries: ArchiveEntry[] = [];
  const manifest: unknown[] = [];
  for (const image of images) {
    const layer = tar(image.files);
    const layerName = `${sha256(layer)}.tar`;
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === "x64" ? "amd64" : process.arch,
        os: "linux",
        config: {
          Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
          Entrypoint: image.entrypoint ?? null,
          Cmd: image.cmd ?? null,
          User: image.user ?? "",
          Labels: { "org.opencontainers.image.ref.name": image.name },
        },
        rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
        history: [{ created_by: "image-archive" }],
      }),
    );
    const configName = `${sha256(config)}.json`;
    if (!entries.some((entry) => entry.path === layerName)) entries.push({ path: layerName, content: layer });
    entries.push({ path: configName, content: config });
    manifest.push({ Config: configName, RepoTags: [image.name], Layers: [layerName] });
  }
  entries.push({ path: "manifest.json", content: JSON.stringify(manifest) });
  await writeFile(file, tar(entries));
}

/** A static busybox with links for its applets, and /etc/passwd; copies the machine's binary. */
export async function busyboxFiles(): Promise<ArchiveEntry[]> {
  const applets = ["sh", "sleep", "cat", "echo", "ls", "id", "env", "true", "false", "touch", "mkdir", "rm", "hostname", "wget"];
  const more = [
    "httpd",
    "nc",
    "ps",
    "kill",
    "seq",
    "head",
    "tail",
    "stat",
    "df",
    "mount",
    "date",
    "readlink",
    "dd",
    "grep",
    "test",
  ];
  return [
    { path: "bin/", mode: 0o755 },
    { path: "bin/busybox", mode: 0o755, content: await readFile("/bin/busybox") },
    ...[...applets, ...more].map((name) => ({ path: `bin/${name}`, linkTo: "/bin/busybox" })),
    { path: "etc/", mode: 0o755 },
    { path: "etc/passwd", mode: 0o644, content: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n" },
    { path: "etc/group", mode: 0o644, content: "root:x:0:\nnogroup:x:65534:\n" },
    { path: "tmp/", mode: 0o1777 },
    { path: "root/", mode: 0o700 },
  ];
}

function tar(entries: readonly ArchiveEntry[]): Buffer {
  const blocks: Buffer[] = [];
  for (const entry of entries) {
    const content = Buffer.from(entry.content ?? "");
    const type = entry.linkTo !== undefined ? "2" : entry.path.endsWith("/") ? "5" : "0";
    const header = Buffer.alloc(512);
    header.write(entry.path, 0, 100);
    writeOctal(header, 100, 8, entry.mode ?? 0o644);
    writeOctal(header, 108, 8, 0);
    writeOctal(header, 116, 8, 0);
    writeOctal(header, 124, 12, content.length);
    writeOctal(header, 136, 12, 0);
    header.fill(" ", 148, 156);
    header.write(type, 156, 1);
    header.write(entry.linkTo ?? "", 157, 100);
    header.write("ustar\0" + "00", 257, 8, "latin1");
    let sum = 0;
    for (const byte of header) sum += byte;
    header.write(sum.toString(8).padStart(6, "0") + "\0 ", 148, 8, "latin1");
    blocks.push(header, content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  blocks.push(Buffer.alloc(1024));
  return Buffer.concat(blocks);
}

function writeOctal(header: Buffer, offset: number, length: number, value: number): void {
  header.write(value.toString(8).padStart(length - 1, "0") + "\0", offset, length, "latin1");
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
