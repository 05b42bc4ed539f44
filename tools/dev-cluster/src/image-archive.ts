import { type FileHandle, open } from "node:fs/promises";
import type { Duplex, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "./failure.ts";

const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** Decompresses gzip, which not all versions of containerd support. @throws Failure when the file is unreadable */
export async function openArchive(archive: string): Promise<Readable> {
  let file: FileHandle | undefined;
  try {
    file = await open(archive);
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    const content = file.createReadStream({ start: 0 });
    return buffer.equals(gzipMagic) ? compose(content, createGunzip()) : content;
  } catch (err) {
    // Node ends the process when the garbage collector finds a file handle that is still open.
    await file?.close();
    throw new Failure(`cannot read ${archive}: ${messageOf(err)}`);
  }
}

/** Pipes and propagates errors of the source to the consumer. */
function compose(content: Readable, unpacked: Duplex): Readable {
  content.once("error", (err) => unpacked.destroy(err));
  return content.pipe(unpacked);
}
