import { Buffer } from "node:buffer";

/** One entry of a tar archive; paths have no leading slash, folders no trailing one. */
export type TarEntry =
  | { type: "file"; path: string; content: Buffer; mode?: number }
  | { type: "folder"; path: string; mode?: number }
  | { type: "symlink"; path: string; target: string };

const typeFlags = { file: "0", symlink: "2", folder: "5" } as const;

/**
 * A ustar archive of the entries in order, owned by root, with modification time 0 for reproducibility.
 * @throws Error when a path or link target exceeds the 100 bytes of a plain header.
 */
export function tar(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = [];
  for (const entry of entries) {
    const content = entry.type === "file" ? entry.content : Buffer.alloc(0);
    blocks.push(header(entry, content.length), content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

function header(entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(512);
  const put = (text: string, offset: number, length: number): void => {
    if (Buffer.byteLength(text) > length) throw new Error(`too long for a tar header: ${text}`);
    block.write(text, offset);
  };
  const octal = (value: number, length: number): string => value.toString(8).padStart(length - 1, "0");
  put(entry.type === "folder" ? `${entry.path}/` : entry.path, 0, 100);
  put(octal(entry.type === "symlink" ? 0o777 : (entry.mode ?? (entry.type === "folder" ? 0o755 : 0o644)), 8), 100, 8);
  put(octal(0, 8), 108, 8);
  put(octal(0, 8), 116, 8);
  put(octal(size, 12), 124, 12);
  put(octal(0, 12), 136, 12);
  put("        ", 148, 8); // the checksum is computed with spaces in its own field
  put(typeFlags[entry.type], 156, 1);
  if (entry.type === "symlink") put(entry.target, 157, 100);
  put("ustar\u000000", 257, 8);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${octal(sum, 7)}\u0000 `, 148, 8);
  return block;
}
