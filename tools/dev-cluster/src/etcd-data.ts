import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * Removes the files of an etcd member that was killed before its first write. A new member creates its write-ahead log, and
 * only then writes its own membership there. When it is killed in between, each later start reads a log without members,
 * which elects no leader: etcd neither serves nor exits. Such a folder contains no data.
 * @param dataDir value of --data-dir; nothing in it may be in use
 * @returns whether something was removed; false for any folder that may contain data
 * Source: etcd 3.4, etcdserver/raft.go startNode and restartNode
 */
export function removeUnusedMember(dataDir: string): boolean {
  const member = join(dataDir, "member");
  if (!isUnused(member)) return false;
  rmSync(member, { recursive: true });
  return true;
}

/** The first file of a log: sequence number 0, entry 0. */
const firstLog = "0000000000000000-0000000000000000.wal";
/** The records of an unused log take some 100 bytes. */
const readBytes = 4096;

function isUnused(member: string): boolean {
  const logs = filesIn(join(member, "wal"), ".wal");
  if (logs.length !== 1 || logs[0] !== firstLog || filesIn(join(member, "snap"), ".snap").length > 0) return false;
  const bytes = Buffer.alloc(readBytes);
  const handle = openSync(join(member, "wal", firstLog), "r");
  try {
    return hasNoEntries(bytes.subarray(0, readSync(handle, bytes, 0, readBytes, 0)));
  } finally {
    closeSync(handle);
  }
}

const filesIn = (folder: string, suffix: string): string[] =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(suffix)) : [];

const recordTypes = { metadata: 1, checksum: 4, snapshot: 5 };

/**
 * Pure: whether a write-ahead log contains only what it is created with, followed by zeros.
 * @param log its beginning. A record is its length (8 bytes, little endian, padding in the highest byte) and a protobuf message
 *   whose first field is the type.
 * Source: etcd 3.4, wal/encoder.go, wal/walpb/record.proto
 */
export function hasNoEntries(log: Buffer): boolean {
  let at = 0;
  for (let records = 0; at + 8 <= log.length; records++) {
    const length = log.readUIntLE(at, 6);
    const padding = log.readUInt8(at + 7) & 0x7;
    if (length === 0) return records > 0;
    const [tag, type] = log.subarray(at + 8, at + 10);
    if (tag !== 0x08 || !Object.values(recordTypes).includes(type ?? 0)) return false;
    at += 8 + length + padding;
  }
  return false;
}
