import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32, deflateRawSync } from "node:zlib";
import { readZipMember } from "./zip.ts";

test("reads stored and deflated members, and names a missing one", () => {
  const archive = zip({
    "a/stored": { text: "as it is", deflate: false },
    "b/deflated": { text: "x".repeat(1000), deflate: true },
  });
  assert.equal(readZipMember(archive, "a/stored").toString(), "as it is");
  assert.equal(readZipMember(archive, "b/deflated").toString(), "x".repeat(1000));
  assert.throws(() => readZipMember(archive, "c"), /has no c/);
  assert.throws(() => readZipMember(Buffer.alloc(100), "c"), /not a zip archive/);
});

function zip(members: Record<string, { text: string; deflate: boolean }>): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, { text, deflate }] of Object.entries(members)) {
    const data = deflate ? deflateRawSync(text) : Buffer.from(text);
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(deflate ? 8 : 0, 4);
    shared.writeUInt32LE(crc32(text), 10);
    shared.writeUInt32LE(data.length, 14);
    shared.writeUInt32LE(text.length, 18);
    shared.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004", "latin1"), shared, Buffer.from(name), data]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\u0000", "latin1"), shared, rest, Buffer.from(name)]));
    bodies.push(local);
    offset += local.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, ...directory, end]);
}
