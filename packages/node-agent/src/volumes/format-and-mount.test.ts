import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAndMount } from "./format-and-mount.ts";

const mount = ["mount", "/dev/d", "/m", "ext4", "rw,defaults"];
const blkid = ["blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", "/dev/d"];
for (const { name, disk = {}, tools = {}, want, error } of [
  {
    name: "that is empty gets a file system",
    tools: { blkid: { code: 2, output: "" } },
    want: [blkid, ["mkfs.ext4", "-F", "-m0", "/dev/d"], mount],
  },
  {
    name: "that has one is checked",
    tools: { blkid: { code: 0, output: "DEVNAME=/dev/d\nTYPE=ext4\n" }, fsck: { code: 1, output: "mended" } },
    want: [blkid, ["fsck", "-a", "/dev/d"], mount],
  },
  {
    name: "that has partitions is not formatted",
    tools: { blkid: { code: 0, output: "DEVNAME=/dev/d\nPTTYPE=dos\n" } },
    want: [blkid, ["fsck", "-a", "/dev/d"], mount],
  },
  {
    name: "of which blkid says nothing gets a file system",
    disk: { fsType: "ext3" },
    tools: { blkid: { code: 0, output: "DEVNAME=/dev/d\n" } },
    want: [blkid, ["mkfs.ext3", "-F", "-m0", "/dev/d"], ["mount", "/dev/d", "/m", "ext3", "rw,defaults"]],
  },
  {
    name: "gets another file system than ext without options",
    disk: { fsType: "xfs" },
    tools: { blkid: { code: 2, output: "" } },
    want: [blkid, ["mkfs.xfs", "/dev/d"], ["mount", "/dev/d", "/m", "xfs", "rw,defaults"]],
  },
  {
    name: "that has one is not touched when it is only read",
    disk: { readOnly: true, fsType: "xfs" },
    tools: { blkid: { code: 0, output: "TYPE=xfs\n" } },
    want: [blkid, ["mount", "/dev/d", "/m", "xfs", "ro,defaults"]],
  },
  {
    name: "that is empty and only read",
    disk: { readOnly: true },
    tools: { blkid: { code: 2, output: "" } },
    error: "cannot mount unformatted disk /dev/d as it is in read-only mode",
  },
  {
    name: "that cannot be read",
    tools: { blkid: { code: 4, output: "" } },
    error: "failed to get disk format of disk /dev/d: exit status 4",
  },
  {
    name: "that is broken",
    tools: { blkid: { code: 0, output: "TYPE=ext4\n" }, fsck: { code: 4, output: "oh" } },
    error: "'fsck' found errors on device /dev/d but could not correct them: oh",
  },
  {
    name: "that cannot be formatted",
    tools: { blkid: { code: 2, output: "" }, "mkfs.ext4": { code: 1, output: "full" } },
    error:
      'format of disk "/dev/d" failed: type:("ext4") target:("/m") options:("rw,defaults") errcode:(exit status 1) output:(full) ',
  },
  { name: "of a file system that is a path", disk: { fsType: "../evil" }, error: '"../evil" is not a file system' },
] as {
  name: string;
  disk?: { readOnly?: boolean; fsType?: string };
  tools?: Record<string, { code: number; output: string }>;
  want?: string[][];
  error?: string;
}[]) {
  test(`a disk ${name}`, async () => {
    const ran: (string | undefined)[][] = [];
    const mounter = {
      mount: async (source: string, target: string, { type, options }: { type?: string; options?: readonly string[] }) =>
        void ran.push(["mount", source, target, type, options?.join(",")]),
      unmount: async () => {},
      mountsBelow: async () => [],
    };
    const done = formatAndMount(
      { device: "/dev/d", target: "/m", fsType: "", readOnly: false, ...disk },
      mounter,
      async (tool, args) => {
        ran.push([tool, ...args]);
        return tools[tool] ?? { code: 0, output: "" };
      },
    );
    if (error !== undefined) return assert.rejects(done, { message: error });
    await done;
    assert.deepEqual(ran, want);
  });
}
