import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { usageBelow } from "../../resources/usage.ts";
import { type FolderQuotas, newFolderQuotas } from "./folder-quotas.ts";
import { editProjectFiles, firstProject, freeProjects, projectOf, withoutProject, withProject } from "./project-files.ts";
import { mountOf, openProjectQuotas, type Run } from "./project-quotas.ts";

const mib = 1024 ** 2;
const unlimited = 2n ** 58n - 1n;

/** A fake xfs_quota. */
interface FakeQuotas {
  run: Run;
  /** The arguments of each run. */
  readonly ran: (readonly string[])[];
  accounting: boolean;
  /** Usage by project ID. */
  used: Map<number, { kib: number; inodes: number }>;
  limits: Map<number, bigint>;
  folders: Map<string, number>;
  /** Commands with this name fail. */
  failing: string | undefined;
}

function fakeQuotas(): FakeQuotas {
  const fake: FakeQuotas = {
    ran: [],
    accounting: true,
    used: new Map(),
    limits: new Map(),
    folders: new Map(),
    failing: undefined,
    async run(_program, args) {
      fake.ran.push(args);
      const [command = "", ...words] = (args.at(-1) ?? "").split(" ");
      if (command === fake.failing) throw new Error(`${command} failed`);
      const id = Number(words.at(-1));
      if (command === "state")
        return `Project quota state on /\n  Accounting: ${fake.accounting ? "ON" : "OFF"}\n  Enforcement: ON\n`;
      if (command === "limit") fake.limits.set(id, BigInt(words[1]?.slice("bhard=".length) ?? ""));
      if (command === "project") fake.folders.set(words[2] ?? "", id);
      if (command !== "quota") return "";
      const { kib = 0, inodes = 0 } = fake.used.get(id) ?? {};
      return `/dev/vda ${words[4] === "-b" ? kib : inodes} 0 0 00 [--------] /\n`;
    },
  };
  return fake;
}

interface Bench {
  dir: string;
  volume(name: string): Promise<string>;
  fake: FakeQuotas;
  quotas: FolderQuotas;
  /** Simulates a restarted agent. */
  again(): FolderQuotas;
  files(): Promise<string[]>;
}

async function aBench(t: TestContext): Promise<Bench> {
  const dir = await mkdtemp(join(tmpdir(), "cox-quota-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const fake = fakeQuotas();
  const program = join(dir, "xfs_quota");
  await writeFile(program, "", { mode: 0o755 });
  const again = (): FolderQuotas =>
    newFolderQuotas({ etc: dir, run: fake.run, programs: [program], magicOf: async () => 0xef53, log: discardLogger });
  return {
    dir,
    fake,
    again,
    quotas: again(),
    async volume(name) {
      await mkdir(join(dir, name));
      return join(dir, name);
    },
    files: () => Promise.all(["projects", "projid"].map((name) => readFile(join(dir, name), "utf8").catch(() => ""))),
  };
}

test("a folder gets its own project; its usage is what the file system reports", async (t) => {
  const { quotas, fake, volume, files } = await aBench(t);
  const [a, b] = [await volume("a"), await volume("b")];
  await quotas.assign(a, true);
  await quotas.assign(b, false);
  assert.deepEqual(
    [...fake.folders],
    [
      [a, firstProject],
      [b, firstProject + 1],
    ],
  );
  assert.deepEqual([...fake.limits.values()], [unlimited, 0n], "counted, not held to its limit");
  assert.deepEqual(await files(), [
    `${firstProject}:${a}\n${firstProject + 1}:${b}\n`,
    `volume${firstProject}:${firstProject}\nvolume${firstProject + 1}:${firstProject + 1}\n`,
  ]);
  fake.used.set(firstProject, { kib: 3072, inodes: 2 });
  assert.deepEqual(await quotas.usage(a), { bytes: 3 * mib, inodes: 2 });
  assert.deepEqual(await usageBelow(a, quotas), { bytes: 3 * mib, inodes: 2 });

  await quotas.clear(a);
  assert.equal(fake.limits.get(firstProject), 0n);
  assert.deepEqual(await files(), [`${firstProject + 1}:${b}\n`, `volume${firstProject + 1}:${firstProject + 1}\n`]);
  assert.equal(await quotas.usage(a), undefined);
  await quotas.assign(a, true);
  assert.deepEqual(await quotas.usage(a), { bytes: 0, inodes: 0 }, "a folder that is created again is counted again");
});

test("a restarted agent keeps existing projects and removes those of deleted pods", async (t) => {
  const { quotas, fake, volume, files, again } = await aBench(t);
  const [a, b] = [await volume("a"), await volume("b")];
  for (const path of [a, b]) await quotas.assign(path, true);
  const before = await files();
  fake.used.set(firstProject, { kib: 1, inodes: 1 });
  const next = again();
  await next.assign(a, true);
  assert.deepEqual(await files(), before);
  assert.deepEqual(await next.usage(a), { bytes: 1024, inodes: 1 });
  await next.clear(b);
  assert.deepEqual((await files())[0], `${firstProject}:${a}\n`);
});

test("project IDs named in a file or used in the file system are not assigned, and lines of other programs are kept", async (t) => {
  const { dir, quotas, fake, volume, files } = await aBench(t);
  await writeFile(join(dir, "projects"), `# mine\n${firstProject}:/srv\n`, { mode: 0o640 });
  await writeFile(join(dir, "projid"), `other:${firstProject + 1}\n`);
  fake.used.set(firstProject + 2, { kib: 0, inodes: 1 });
  const a = await volume("a");
  await quotas.assign(a, true);
  assert.equal(fake.folders.get(a), firstProject + 3);
  await quotas.clear(a);
  assert.deepEqual(await files(), [`# mine\n${firstProject}:/srv\n`, `other:${firstProject + 1}\n`]);
});

for (const { name, spoil } of [
  { name: "whose file system does not count", spoil: ({ fake }) => Object.assign(fake, { accounting: false }) },
  { name: "where the program fails", spoil: ({ fake }) => Object.assign(fake, { failing: "project" }) },
  { name: "where the files are links", spoil: ({ dir }) => symlink("/dev/null", join(dir, "projects")) },
] as readonly { name: string; spoil: (bench: Bench) => unknown }[]) {
  test(`a folder ${name} is walked`, async (t) => {
    const bench = await aBench(t);
    await spoil(bench);
    const path = await bench.volume("a");
    await bench.quotas.assign(path, true);
    assert.equal(await bench.quotas.usage(path), undefined);
    assert.equal((await usageBelow(path, bench.quotas)).inodes, 1);
    assert.deepEqual(await bench.files(), ["", ""]);
    await bench.quotas.clear(path);
  });
}

test("a folder is assigned once, and one that cannot be assigned does not keep the next one from it", async (t) => {
  const { dir, quotas, fake, volume } = await aBench(t);
  const [a, b] = [await volume("a"), await volume("b")];
  fake.failing = "project";
  await quotas.assign(a, true);
  fake.failing = undefined;
  await quotas.assign(b, true);
  await quotas.assign(b, true);
  assert.equal(fake.ran.filter((args) => args.at(-1)?.startsWith("project ")).length, 2);
  assert.deepEqual([...fake.folders.keys()], [b]);
  assert.deepEqual(await openFilesBelow(dir), []);
});

test("a project whose limit cannot be removed is given up all the same", async (t) => {
  const { quotas, fake, volume, files } = await aBench(t);
  const a = await volume("a");
  await quotas.assign(a, true);
  fake.failing = "limit";
  await quotas.clear(a);
  assert.deepEqual(await files(), ["", ""]);
});

test("a project with usage of either kind is not assigned", async (t) => {
  const { quotas, fake, volume } = await aBench(t);
  fake.used.set(firstProject, { kib: 1, inodes: 0 });
  fake.used.set(firstProject + 1, { kib: 0, inodes: 1 });
  const a = await volume("a");
  await quotas.assign(a, true);
  assert.equal(fake.folders.get(a), firstProject + 2);
});

test("the program gets a table with the mount of the folder alone, which does not stay", async (t) => {
  const { dir, quotas, fake } = await aBench(t);
  await symlink("/proc", join(dir, "link")); // a mount of its own
  const tables: string[] = [];
  const { run } = fake;
  fake.run = async (program, args) => {
    tables.push(await readFile(args[1] ?? "", "utf8"));
    return run(program, args);
  };
  const again = newFolderQuotas({
    etc: dir,
    run: (...given) => fake.run(...given),
    programs: [join(dir, "xfs_quota")],
    magicOf: async () => 0xef53,
    log: discardLogger,
  });
  await again.assign(join(dir, "link"), true);
  const mount = mountOf(await readFile("/proc/self/mounts", "utf8"), "/proc");
  assert.ok(mount !== undefined && tables.length > 0);
  assert.deepEqual(new Set(tables), new Set([`${mount.line}\n`]));
  assert.deepEqual(new Set(fake.ran.map((args) => args[args.indexOf("-f") + 1])), new Set([mount.point]));
  for (const args of fake.ran) await assert.rejects(stat(args[1] ?? ""), { code: "ENOENT" });
  await quotas.clear(join(dir, "link"));
});

for (const { name, magic, text, want } of [
  { name: "no output on XFS", magic: 0x58465342, text: "", want: [{ bytes: 0, inodes: 0 }, 2n ** 63n - 1n] },
  { name: "no output on ext4", magic: 0xef53, text: "", want: "unable to parse quota output ''" },
] as const) {
  test(`${name} ${typeof want === "string" ? "is an error" : "means an unused project, whose limit is the largest"}`, async (t) => {
    const { dir, fake } = await aBench(t);
    const run: Run = async (program, args) => (args.at(-1)?.startsWith("quota") ? text : fake.run(program, args));
    const quotas = await openProjectQuotas(dir, { run, programs: [join(dir, "xfs_quota")], magicOf: async () => magic });
    assert.ok(quotas !== undefined);
    if (typeof want === "string") return assert.rejects(quotas.usage(7), { message: want });
    await quotas.join(dir, 7, true);
    assert.deepEqual([await quotas.usage(7), fake.limits.get(7)], want);
  });
}

test("project files keep their mode, are written one agent at a time, and name a project before a folder is in it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-projects-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const name of ["projects", "projid"]) await writeFile(join(dir, name), "", { mode: 0o640 });
  const add = (path: string, id: number) =>
    editProjectFiles(dir, async (files) => {
      await settle();
      return { files: withProject(files, path, id), result: undefined };
    });
  await Promise.all([add("/a", 7), add("/b", 8)]);
  const lines = async (name: string) => (await readFile(join(dir, name), "utf8")).trimEnd().split("\n").toSorted();
  assert.deepEqual(
    [await lines("projects"), await lines("projid")],
    [
      ["7:/a", "8:/b"],
      ["volume7:7", "volume8:8"],
    ],
  );
  assert.deepEqual(
    [(await stat(join(dir, "projects"))).mode & 0o777, (await stat(join(dir, "projid"))).mode & 0o777],
    [0o640, 0o640],
  );
  await mkdir(join(dir, "projects.kubelet"));
  await assert.rejects(add("/c", 9), { code: "EISDIR" });
  assert.deepEqual(
    [await lines("projects"), await lines("projid")],
    [
      ["7:/a", "8:/b"],
      ["volume7:7", "volume8:8", "volume9:9"],
    ],
  );
});

test("a folder is walked when its file system stops reporting usage", async (t) => {
  const { quotas, fake, volume } = await aBench(t);
  const path = await volume("a");
  await quotas.assign(path, true);
  fake.failing = "quota";
  assert.equal(await quotas.usage(path), undefined);
  assert.equal((await usageBelow(path, quotas)).inodes, 1);
});

test("a path that is more than one word of a command is not counted", async (t) => {
  const { quotas, fake, volume } = await aBench(t);
  for (const name of ["a b", 'a"', "a\nb", "a;b"]) await quotas.assign(await volume(name), true);
  assert.deepEqual([...fake.folders], []);
});

test("project files: a folder is found by its full path, and removing a project's last folder removes its name", () => {
  const files = { projects: ["7:/a/b", "8:/a", "x:/c", "# 9:/d"], projid: ["seven:7", "eight:8"] };
  assert.deepEqual(
    ["/a", "/a/b", "/b", "/c", "/d"].map((path) => projectOf(files, path)),
    [8, 7, undefined, undefined, undefined],
  );
  const two = withProject(files, "/e", 7);
  assert.deepEqual(withoutProject(two, "/a/b", 7).projid, two.projid);
  assert.deepEqual(withoutProject(files, "/a/b", 7), { projects: ["8:/a", "x:/c", "# 9:/d"], projid: ["eight:8"] });
  let tried = 0;
  const tryAll = () => {
    for (const _ of freeProjects(files)) tried++;
  };
  assert.throws(tryAll, { message: "cannot find available quota ID" });
  assert.equal(tried, 129, "128 in use, and one more");
  const taken = [0, 1, 2, 3].map((i) => firstProject + i);
  const busy = { projects: [`${taken[0]}:/a`, `${taken[1]}:/b`], projid: [`x:${taken[2]}`, `y:${taken[3]}`] };
  assert.equal(freeProjects(busy).next().value, firstProject + 4);
});

test("a path belongs to the longest mount point above it, of several the last mounted", () => {
  const mounts = "/dev/a / ext4 rw 0 0\n/dev/b /var xfs rw 0 0\n/dev/c /var xfs rw,prjquota 0 0\n/dev/d /variable xfs rw 0 0\n";
  assert.equal(mountOf(mounts, "/var/lib/kubelet")?.line, "/dev/c /var xfs rw,prjquota 0 0");
  assert.equal(mountOf(mounts, "/variables")?.point, "/");
  assert.equal(mountOf(mounts, "/var")?.point, "/var");
});

for (const type of ["xfs", "ext4"] as const) {
  test(`a real ${type} file system reports usage without a walk`, async (t) => {
    const made = await aRealFilesystem(t, type);
    if (typeof made === "string") return t.skip(made);
    const quotas = newFolderQuotas({ etc: made.etc, programs: [made.xfsQuota], log: discardLogger });
    const path = join(made.root, "volume");
    await mkdir(path);
    await quotas.assign(path, true);
    await writeFile(join(path, "file"), Buffer.alloc(3 * mib, 1), { flush: true });
    await mkdir(join(path, "folder"));
    const counted = await quotas.usage(path);
    const walked = await usageBelow(path);
    assert.ok(counted !== undefined);
    assert.equal(counted.inodes, walked.inodes);
    assert.ok(counted.bytes >= 3 * mib && Math.abs(counted.bytes - walked.bytes) < mib, `${counted.bytes}, ${walked.bytes}`);
    await quotas.clear(path);
    assert.equal(await quotas.usage(path), undefined);
    assert.equal(await readFile(join(made.etc, "projects"), "utf8"), "");
    await rm(path, { recursive: true });
  });
}

const makers = { xfs: ["mkfs.xfs", "-q"], ext4: ["mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota"] } as const;

/** @returns the reason to skip: many kernels have no quotas, and xfs_quota is in a separate package */
async function aRealFilesystem(
  t: TestContext,
  type: keyof typeof makers,
): Promise<{ root: string; etc: string; xfsQuota: string } | string> {
  if (process.getuid?.() !== 0) return "needs root";
  const run = promisify(execFile);
  const dir = await mkdtemp(join(tmpdir(), "cox-quota-real-"));
  const [image, root] = [join(dir, "image"), join(dir, "root")];
  let isMounted = false;
  t.after(async () => {
    if (isMounted) await run("umount", [root]);
    await rm(dir, { recursive: true, force: true });
  });
  await mkdir(root);
  const [maker, ...settings] = makers[type];
  try {
    const { stdout } = await run("sh", ["-c", "command -v xfs_quota"]);
    await run("truncate", ["-s", "400M", image]);
    await run(maker, [...settings, image]);
    await run("mount", ["-o", "loop,prjquota", image, root]);
    isMounted = true;
    return { root, etc: dir, xfsQuota: stdout.trim() };
  } catch (err) {
    return `no ${type} with project quotas here: ${(err as Error).message.split("\n")[0]}`;
  }
}
