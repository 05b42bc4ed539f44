import { constants, type Dirent, type Stats } from "node:fs";
import { type FileHandle, open, readdir, readlink, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

const plain = { "content-type": "text/plain; charset=utf-8" };
const chunkBytes = 64 * 1024;

/**
 * `GET /logs/…`: the files of `root` (/var/log), as Go's file server presents them: folders as links, files with a single range.
 * Links are followed within `root` only, because containers may write to folders of it.
 * @param names decoded path below /logs/
 * @param isFolder the path ends with a slash
 * Source: pkg/kubelet/kubelet.go ServeLogs; Go net/http fs.go serveFile
 */
export async function serveSystemLogs(
  exchange: Exchange,
  root: string,
  names: readonly string[],
  isFolder: boolean,
  query: string,
): Promise<void> {
  if (exchange.method !== "GET") return exchange.respond(405, plain, "405: Method Not Allowed");
  if (names.length === 0 && !isFolder) return notFound(exchange);
  const redirect = (to: string): void => exchange.respond(301, { location: query === "" ? to : `${to}?${query}` });
  const last = encodeURIComponent(names.at(-1) ?? "");
  if (last === "index.html" && !isFolder) return redirect("./");
  let file: FileHandle | undefined;
  try {
    const opened = await openBelow(root, names);
    file = opened.file;
    const info = await file.stat();
    if (info.isDirectory()) {
      if (!isFolder) return redirect(`${last}/`);
      const entries = await readdir(opened.path, { withFileTypes: true });
      return exchange.respond(200, { "content-type": "text/html; charset=utf-8", ...modified(info) }, listing(entries));
    }
    if (isFolder) return redirect(`../${last}`);
    if (!info.isFile()) return notFound(exchange);
    await sendFile(exchange, file, info);
  } catch (err) {
    const code = errorCode(err);
    if (code === "EACCES" || code === "EPERM") exchange.respond(403, plain, "403 Forbidden\n");
    else if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "ENAMETOOLONG") notFound(exchange);
    else throw err;
  } finally {
    await file?.close();
  }
}

function notFound(exchange: Exchange): void {
  exchange.respond(404, plain, "404 page not found\n");
}

function modified(info: Stats): { "last-modified": string } {
  return { "last-modified": info.mtime.toUTCString() };
}

/** @throws ENOENT also for what is outside of the folder */
async function openBelow(root: string, names: readonly string[]): Promise<{ file: FileHandle; path: string }> {
  const [top, path] = await Promise.all([realpath(root), realpath(join(root, ...names))]);
  const isInside = (one: string): boolean => one === top || one.startsWith(top + sep);
  const outside = (): Error => Object.assign(new Error(`${path} is outside of ${top}`), { code: "ENOENT" });
  if (!isInside(path)) throw outside();
  // Without O_NONBLOCK the opening of a FIFO would wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    // A folder of the path may have been replaced by a link meanwhile.
    const actual = await readlink(`/proc/self/fd/${file.fd}`);
    if (!isInside(actual)) throw outside();
    return { file, path: `/proc/self/fd/${file.fd}` };
  } catch (err) {
    await file.close();
    throw err;
  }
}

/** Pure: a page of links, by name. */
function listing(entries: readonly Dirent[]): string {
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const lines = names.map((name) => {
    const href = encodeURIComponent(name).replaceAll("%2F", "/");
    // A colon in the first part would be read as a scheme.
    return `<a href="${href.includes(":") || name.includes(":") ? "./" : ""}${href}">${escaped(name)}</a>\n`;
  });
  return `<pre>\n${lines.join("")}</pre>\n`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!);
}

async function sendFile(exchange: Exchange, file: FileHandle, info: Stats): Promise<void> {
  const headers = { "accept-ranges": "bytes", ...modified(info) };
  const since = Date.parse(exchange.headers["if-modified-since"] ?? "");
  if (Math.floor(info.mtimeMs / 1000) * 1000 <= since) return exchange.respond(304, headers);
  const range = rangeOf(exchange.headers.range, info.size);
  if (range === "unsatisfiable") {
    return exchange.respond(416, { ...plain, "content-range": `bytes */${info.size}` }, "invalid range: failed to overlap\n");
  }
  const { from, to } = range ?? { from: 0, to: info.size };
  const start = Buffer.alloc(Math.min(512, info.size));
  await file.read(start, 0, start.length, 0);
  const stream = exchange.stream(range === undefined ? 200 : 206, {
    ...headers,
    "content-type": contentType(start),
    "content-length": to - from,
    ...(range === undefined ? {} : { "content-range": `bytes ${from}-${to - 1}/${info.size}` }),
  });
  for (let at = from; at < to; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, to - at));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return exchange.destroy(); // truncated meanwhile: the announced length cannot be kept
    at += bytesRead;
    try {
      if (!stream.write(chunk.subarray(0, bytesRead))) await stream.drained();
    } catch {
      return; // the client has disconnected
    }
    if (exchange.isGone) return;
  }
  stream.end();
}

/** @returns undefined for the whole file, also for several ranges; `to` is exclusive */
export function rangeOf(header: string | undefined, size: number): { from: number; to: number } | "unsatisfiable" | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.replaceAll(" ", "") ?? "");
  const [first = "", last = ""] = match?.slice(1) ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") return last === "0" ? "unsatisfiable" : { from: Math.max(0, size - Number(last)), to: size };
  const from = Number(first);
  const to = last === "" ? size : Math.min(size, Number(last) + 1);
  return from >= size || to <= from ? "unsatisfiable" : { from, to };
}

/** Never HTML: a container's output must not run as a page of the API server. */
function contentType(start: Buffer): string {
  if (start[0] === 0x1f && start[1] === 0x8b) return "application/x-gzip";
  const isBinary = start.some((byte) => byte < 0x09 || byte === 0x0b || (byte > 0x0d && byte < 0x20 && byte !== 0x1b));
  return isBinary ? "application/octet-stream" : "text/plain; charset=utf-8";
}
