import assert from "node:assert/strict";
import childProcess from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { installFlexDriver, success } from "../testing/flex-driver.ts";
import { NotSupported, newFlexDrivers } from "./driver.ts";
import { driverOptions, flexVolumeOf } from "./volume.ts";

const says = (answer: unknown): string => `echo '${JSON.stringify(answer)}'`;

/** A folder of drivers, one of which is `acme/disk` with these answers. */
async function started(t: TestContext, answers: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), "cox-flex-"));
  t.after(() => rm(folder, { recursive: true }));
  const dir = join(folder, "acme~disk");
  const install = (given: Readonly<Record<string, string>>) => installFlexDriver(dir, "disk", given);
  await install(answers);
  const requested = async () => (await readFile(join(dir, "requested"), "utf8")).trimEnd().split("\n");
  return { folder, install, requested, drivers: newFlexDrivers(folder) };
}

for (const [name, capabilities, want] of [
  ["says nothing", undefined, { attach: true, supportsMetrics: false, fsGroup: true }],
  [
    "says the opposite",
    { attach: false, supportsMetrics: true, fsGroup: false },
    { attach: false, supportsMetrics: true, fsGroup: false },
  ],
  [
    "says what is no boolean",
    { attach: "no", fsGroup: 0, supportsMetrics: null },
    { attach: true, supportsMetrics: false, fsGroup: true },
  ],
] as const) {
  test(`a driver that ${name} about its capabilities has ${JSON.stringify(want)}`, async (t) => {
    const { drivers } = await started(t, { init: says({ status: "Success", ...(capabilities && { capabilities }) }) });
    assert.deepEqual((await drivers.find("acme/disk"))?.capabilities, want);
  });
}

test("an answer has a device and whether it is attached, if the driver says so", async (t) => {
  const { drivers, requested } = await started(t, {
    init: success,
    attach: says({ status: "Success", device: "/dev/x", attached: true }),
    isattached: says({ status: "Success", device: 1, attached: "true" }),
  });
  const driver = await drivers.find("acme/disk");
  assert.deepEqual(await driver?.call("attach", "{}", "node one"), { device: "/dev/x", attached: true });
  assert.deepEqual(await driver?.call("isattached"), { device: "", attached: false });
  assert.deepEqual(await requested(), ["init", "attach", "{}", "node one", "isattached"]);
});

test("a command that is not supported is called once", async (t) => {
  const { drivers, requested } = await started(t, { init: success });
  const driver = await drivers.find("acme/disk");
  for (let i = 0; i < 2; i++) await assert.rejects(driver?.call("detach") ?? Promise.resolve(), NotSupported);
  assert.deepEqual(await requested(), ["init", "detach"]);
});

for (const [name, script, message] of [
  ["fails", says({ status: "Failure", message: "no disk" }), "mount command failed, status: Failure, reason: no disk"],
  ["says no status", "echo '{}'", "mount command failed, status: , reason: "],
  ["says nothing that is an object", "echo null", "mount command failed, status: , reason: "],
  ["ends with an error in spite of its answer", `${success}; exit 3`, "exit status 3"],
  ["is killed after its answer", `${success}; kill -9 $$`, "signal: SIGKILL"],
  ["says something on the other stream, too", `${success}; echo oops >&2`, /JSON|unexpected|invalid/i],
  ["says nothing", ":", /JSON|unexpected|invalid/i],
] as const) {
  test(`a driver that ${name} is an error, each time`, async (t) => {
    const { drivers } = await started(t, { init: success, mount: script });
    const driver = await drivers.find("acme/disk");
    for (let i = 0; i < 2; i++) {
      const call = driver?.call("mount") ?? Promise.resolve();
      await assert.rejects(call, (err: Error) => {
        assert.ok(!(err instanceof NotSupported));
        if (typeof message === "string") assert.equal(err.message, message);
        else assert.match(err.message, message);
        return true;
      });
    }
  });
}

test("a driver is initialised once, again when its file was replaced, and each time as long as that fails", async (t) => {
  const { drivers, install, requested } = await started(t, { init: says({ status: "Failure" }) });
  assert.equal(await drivers.find("acme/disk"), undefined);
  assert.equal(await drivers.find("acme/disk"), undefined);
  assert.deepEqual(await requested(), ["init", "init"]);
  await install({ init: success });
  const [one, other] = await Promise.all([drivers.find("acme/disk"), drivers.find("acme/disk")]);
  assert.ok(one !== undefined && one === other && one === (await drivers.find("acme/disk")));
  assert.equal((await requested()).length, 3);
  await install({ init: says({ status: "Success", capabilities: { attach: false } }) });
  assert.equal((await drivers.find("acme/disk"))?.capabilities.attach, false);
});

test("a driver's name is vendor and program, and leads to no other folder", async (t) => {
  const { folder, drivers } = await started(t, { init: success });
  await installFlexDriver(join(folder, "plain"), "plain", { init: success });
  await installFlexDriver(folder, "outside", { init: success });
  await mkdir(join(folder, "acme~folder", "folder"), { recursive: true });
  assert.ok((await drivers.find("plain")) !== undefined);
  for (const name of [
    "",
    ".",
    "..",
    "acme~disk",
    "acme/",
    "acme/..",
    "../outside",
    ".hidden/x",
    "acme/none",
    "acme/folder",
    "a\0b",
  ]) {
    assert.equal(await drivers.find(name), undefined, JSON.stringify(name));
  }
});

test("all folders but hidden ones are drivers by name; without the folder there are none", async (t) => {
  const { folder, drivers } = await started(t, {});
  await mkdir(join(folder, "other~vendor~x"));
  await mkdir(join(folder, ".acme~new"));
  await writeFile(join(folder, "broken"), "");
  assert.deepEqual((await drivers.names()).sort(), ["acme/disk", "broken", "other/vendor/x"]);
  assert.deepEqual(await newFlexDrivers(join(folder, "none")).names(), []);
});

test("a volume is described by its own options, which win over those of the command, and these over the usual ones", () => {
  const source = { driver: "acme/disk", fsType: "xfs", readOnly: true, options: { size: "1", b: "own" } };
  const volume = flexVolumeOf(source, { name: "pv", readOnly: false });
  assert.deepEqual(volume, { driver: "acme/disk", name: "pv", fsType: "xfs", readOnly: false, options: { size: "1", b: "own" } });
  assert.deepEqual(JSON.parse(driverOptions(volume, { a: "1", b: "2", "kubernetes.io/fsType": "ext4" })), {
    "kubernetes.io/fsType": "ext4",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "pv",
    a: "1",
    b: "own",
    size: "1",
  });
  const bare = flexVolumeOf({ driver: "acme/disk" }, { name: "data", readOnly: true });
  assert.deepEqual(JSON.parse(driverOptions(bare)), {
    "kubernetes.io/fsType": "",
    "kubernetes.io/readwrite": "ro",
    "kubernetes.io/pvOrVolumeName": "data",
  });
});

test("a driver has ten minutes to wait for a disk, then it is stopped; the other commands have no limit", async (t) => {
  const { spawn } = childProcess;
  const limits: (number | undefined)[] = [];
  t.mock.method(childProcess, "spawn", (program: string, args: string[], options: childProcess.SpawnOptions) => {
    limits.push(options.timeout);
    return spawn(program, args, { ...options, ...(options.timeout !== undefined && { timeout: 200 }) });
  });
  t.after(syncBuiltinESMExports);
  syncBuiltinESMExports();
  const { drivers } = await started(t, { init: success, mount: success, waitforattach: "exec sleep 1000" });
  const driver = await drivers.find("acme/disk");
  await driver?.call("mount");
  await assert.rejects(driver?.call("waitforattach") ?? Promise.resolve(), { message: "timeout" });
  t.mock.restoreAll();
  assert.deepEqual(limits, [undefined, undefined, 600_000]);
});
