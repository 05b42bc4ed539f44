import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext as Testing, test } from "node:test";
import type {
  FlexPersistentVolumeSource,
  Node,
  PersistentVolumeSpec,
  Pod,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, persistentVolumeClaims, persistentVolumes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { installFlexDriver, success } from "@coxswain/apimachinery/testing/flex-driver";
import { isMissingFile, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { defaultConfig, newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { newAttachDetachController } from "./controller.ts";

const id = "example.com/disk/pv-1";
const device = "/dev/disk1";
const attaches = `echo '{"status":"Success","device":"${device}"}'`;
const notSupported = `echo '{"status":"Not supported"}'`;
const managed = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
const attachedList = [{ name: id, devicePath: device }];

type Listed = NonNullable<Node["status"]>["volumesAttached"];
const aManagedNode = (name: string, volumesAttached?: Listed): Node => ({
  ...aNode({ name, annotations: managed }),
  status: volumesAttached === undefined ? {} : { volumesAttached },
});
const user = (name: string, node: string): Pod =>
  aPod({ name, nodeName: node, spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] } });

interface Bench extends TestContext {
  readonly folder: string;
  install(answers: Readonly<Record<string, string>>): Promise<void>;
  /** Calls recorded by the driver, one line per argument, without `init` and options. */
  requested(): Promise<string[]>;
  listOn(node: string): Listed;
}

/** Sets up the nodes a and b, a driver directory, and a flex volume bound to `default/data`. */
async function setUp(t: Testing, answers?: Readonly<Record<string, string>>): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), "cox-flex-"));
  // Retries: a running driver may still write its record while the directory is being removed.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const context = newTestContext(t, { volumes: { ...defaultConfig.volumes, flexPluginDir: folder } });
  const flexVolume: FlexPersistentVolumeSource = { driver: "example.com/disk", fsType: "ext4", options: { size: "1<2" } };
  const spec = { hostPath: undefined, flexVolume, claimRef: { namespace: "default", name: "data", uid: "data-uid" } };
  context.client.put(nodes, aManagedNode("a"), aManagedNode("b"));
  context.client.put(persistentVolumes, aVolume("pv-1", spec as unknown as Partial<PersistentVolumeSpec>));
  context.client.put(persistentVolumeClaims, { ...aClaim({ volumeName: "pv-1" }), status: { phase: "Bound" } });
  const driverDir = join(folder, "example.com~disk");
  const install: Bench["install"] = (some) => installFlexDriver(driverDir, "disk", some);
  if (answers !== undefined) await install(answers);
  return {
    ...context,
    folder,
    install,
    async requested() {
      const text = await readFile(join(driverDir, "requested"), "utf8").catch(() => "");
      return text.split("\n").filter((line) => line !== "" && line !== "init" && !line.startsWith("{"));
    },
    listOn: (node) => context.client.object<Node>(nodes, node)?.status?.volumesAttached,
  };
}

async function attachedOnA(bench: Bench): Promise<void> {
  bench.client.put(pods, user("web", "a"));
  await bench.run(newAttachDetachController(bench.ctx));
  await waitFor(() => bench.listOn("a"));
}

test("a flex volume's driver is informed of the volume and the node, and the node of the device", async (t) => {
  const bench = await setUp(t, { init: success, getvolumename: success, attach: attaches });
  await attachedOnA(bench);
  assert.deepEqual(bench.listOn("a"), attachedList);
  assert.deepEqual(await bench.requested(), ["getvolumename", "attach", "a"]);
  const requested = (await readFile(join(bench.folder, "example.com~disk/requested"), "utf8")).split("\n");
  assert.deepEqual(JSON.parse(requested[requested.indexOf("attach") + 1] ?? ""), {
    "kubernetes.io/fsType": "ext4",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "pv-1",
    size: "1<2",
  });
  await waitFor(() => bench.events.length > 0);
  assert.deepEqual(bench.events, ['Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv-1" ']);
  const text = await bench.ctx.registry.render();
  for (const line of [
    `storage_count_attachable_volumes_in_use{node="a",volume_plugin="example.com/disk"} 1`,
    `attachdetach_controller_total_volumes{plugin_name="example.com/disk",state="actual_state_of_world"} 1`,
    `storage_operation_duration_seconds_count{volume_plugin="example.com/disk",operation_name="volume_attach",status="success",migrated="false"} 1`,
  ])
    assert.ok(text.includes(`${line}\n`), line);
});

test("a flex volume is detached when no pod needs it and the node is done with it, and then attached elsewhere", async (t) => {
  const bench = await setUp(t, { init: success, attach: attaches, detach: success });
  await attachedOnA(bench);
  const used = { volumesInUse: [id], volumesAttached: attachedList };
  bench.client.put(nodes, { ...aManagedNode("a"), status: used });
  bench.client.put(pods, user("next", "b"));
  await waitFor(() => bench.events.some((event) => event.includes("Multi-Attach error")));
  bench.client.remove(pods, "default/web");
  await bench.clock.advance(1000);
  assert.ok(!(await bench.requested()).includes("detach"), "the node uses it still");
  bench.client.put(nodes, { ...aManagedNode("a"), status: { ...used, volumesInUse: [] } });
  await waitFor(() => bench.listOn("b"));
  assert.deepEqual((await bench.requested()).slice(-5), ["detach", "pv-1", "a", "attach", "b"]);
  assert.equal(bench.listOn("a"), undefined);
});

test("pods get an event that says why a driver failed; it is called again, and to undo what it may have done", async (t) => {
  const failing = `echo '{"status":"Failure","message":"no slot"}'; exit 1`;
  const bench = await setUp(t, { init: success, attach: failing, detach: success });
  bench.client.put(pods, user("web", "a"));
  await bench.run(newAttachDetachController(bench.ctx));
  const failure =
    'Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-1" : attach command failed, status: Failure, reason: no slot';
  await waitFor(() => bench.events.length === 1);
  assert.deepEqual(bench.events, [failure]);
  assert.equal(bench.listOn("a"), undefined);
  await bench.clock.advance(500);
  await waitFor(() => bench.events.length === 2);
  bench.client.remove(pods, "default/web");
  await waitFor(async () => {
    await bench.clock.advance(1000);
    return (await bench.requested()).includes("detach");
  });
});

test("a driver that cannot attach on its own still has its volume counted as attached, without a device", async (t) => {
  const bench = await setUp(t, { init: success, attach: notSupported });
  await attachedOnA(bench);
  assert.deepEqual(bench.listOn("a"), [{ name: id, devicePath: "" }]);
});

test("after a restart the node's list shows what is attached: it stays or is detached, and foreign volumes are left", async (t) => {
  const foreign = { name: "kubernetes.io/gce-pd/x", devicePath: "/dev/sdb" };
  const gone = { name: "example.com/disk/pv-0", devicePath: "/dev/disk0" };
  const bench = await setUp(t, { init: success, attach: attaches, detach: success });
  bench.client.put(nodes, aManagedNode("a", [foreign, ...attachedList, gone]));
  // A node that attaches its volumes itself.
  const own = [{ name: "example.com/disk/pv-9", devicePath: "/dev/disk9" }];
  bench.client.put(nodes, { ...aNode({ name: "c" }), status: { volumesAttached: own } });
  bench.client.put(pods, user("web", "a"));
  await bench.run(newAttachDetachController(bench.ctx));
  await waitFor(() => bench.listOn("a")?.length === 2);
  assert.deepEqual(bench.listOn("a"), [foreign, ...attachedList]);
  await waitFor(async () => (await bench.requested()).length === 3);
  assert.deepEqual(await bench.requested(), ["detach", "pv-0", "a"]);
  assert.deepEqual([bench.events, bench.listOn("c")], [[], own]);
});

test("a volume that its driver has lost is attached anew", async (t) => {
  const bench = await setUp(t, { init: success, attach: attaches, isattached: `echo '{"status":"Success","attached":false}'` });
  await attachedOnA(bench);
  await bench.clock.advance(60_000);
  await waitFor(async () => (await bench.requested()).filter((line) => line === "attach").length === 2);
  await waitFor(() => bench.listOn("a"));
  assert.deepEqual((await bench.requested()).slice(-4), ["isattached", "a", "attach", "a"]);
});

const answerOf = (attached: boolean): string => `echo '{"status":"Success","attached":${attached}}'`;

test("an answer about an attachment that was made anew meanwhile does not count", async (t) => {
  const bench = await setUp(t);
  const go = join(bench.folder, "go");
  // Runs until the file or the directory of the test says so; once the file is there, the volume is attached.
  const waits = `if [ -e ${go} ]; then ${answerOf(true)}; else while [ -e ${bench.folder} ] && [ ! -e ${go} ]; do sleep 0.02; done; ${answerOf(false)}; fi`;
  await bench.install({ init: success, attach: attaches, detach: success, isattached: waits });
  await attachedOnA(bench);
  const requested = async (command: string): Promise<number> =>
    (await bench.requested()).filter((line) => line === command).length;
  const lookUntil = (looks: number): Promise<boolean> =>
    waitFor(async () => {
      await bench.clock.advance(60_000);
      return (await requested("isattached")) >= looks;
    });
  await lookUntil(1);
  bench.client.remove(pods, "default/web");
  await waitFor(async () => (await requested("detach")) === 1);
  bench.client.put(pods, user("next", "a"));
  await waitFor(async () => (await requested("attach")) === 2);
  await waitFor(() => bench.listOn("a"));
  await writeFile(go, "");
  await lookUntil(3);
  assert.equal(await requested("attach"), 2);
});

test("the periodic check of volumes ends with the controller", async (t) => {
  const bench = await setUp(t, { init: success, attach: attaches });
  const controller = newAttachDetachController(bench.ctx);
  await bench.run();
  const before = bench.clock.waiting;
  const ending = new AbortController();
  const running = controller.run(ending.signal);
  bench.client.put(pods, user("web", "a"));
  await waitFor(() => bench.listOn("a"));
  ending.abort();
  await running;
  assert.equal(bench.clock.waiting, before, "timers");
});

test("a driver that hangs keeps neither those that come later nor other drivers' volumes waiting", async (t) => {
  const bench = await setUp(t, { init: success, attach: attaches, isattached: `echo '{"status":"Success","attached":false}'` });
  // Runs until the directory is removed at the end of the test.
  const hangs = `while [ -e ${bench.folder} ]; do sleep 0.05; done`;
  const add = (vendor: string, answers: Readonly<Record<string, string>>): Promise<void> =>
    installFlexDriver(join(bench.folder, `${vendor}~disk`), "disk", answers);
  const requestedFor = async (vendor: string, command: string): Promise<boolean> =>
    (await readFile(join(bench.folder, `${vendor}~disk`, "requested"), "utf8").catch(() => "")).split("\n").includes(command);
  await add("mute", { init: hangs });
  await add("slow", { init: success, attach: attaches, isattached: hangs });
  const volumes = [{ name: "v", flexVolume: { driver: "slow/disk" } }];
  bench.client.put(pods, aPod({ name: "slow", nodeName: "b", spec: { volumes } }));
  await attachedOnA(bench);
  await waitFor(() => bench.listOn("b"));
  await bench.clock.advance(60_000);
  await waitFor(() => requestedFor("slow", "isattached"));
  await waitFor(() => requestedFor("mute", "init"));
  await waitFor(async () => (await bench.requested()).filter((line) => line === "attach").length === 2);
  await waitFor(() => bench.listOn("a"));
  await add("late", { init: success });
  await bench.clock.advance(60_000);
  await waitFor(() => requestedFor("late", "init"));
  await waitFor(async () => (await bench.requested()).filter((line) => line === "attach").length === 3);
  const slow = (await readFile(join(bench.folder, "slow~disk", "requested"), "utf8")).split("\n");
  assert.equal(slow.filter((line) => line === "isattached").length, 1, "while it runs it is not started again");
});

test("a driver that comes later, and one that attaches nothing", async (t) => {
  const bench = await setUp(t);
  bench.client.put(pods, user("web", "a"));
  await bench.run(newAttachDetachController(bench.ctx));
  await bench.install({ init: `echo '{"status":"Success","capabilities":{"attach":false}}'`, attach: attaches });
  await bench.clock.advance(60_000);
  await waitFor(async () => (await readFile(join(bench.folder, "example.com~disk/requested"), "utf8")).includes("init"), {
    retry: isMissingFile,
  });
  assert.deepEqual(await bench.requested(), []);
  await bench.install({ init: success, attach: attaches });
  await mkdir(join(bench.folder, "no~driver"));
  await waitFor(async () => {
    await bench.clock.advance(60_000);
    return bench.listOn("a");
  });
});

test("a volume that stands in the pod itself has the pod's name for it, and may be on several nodes", async (t) => {
  const bench = await setUp(t, { init: success, attach: attaches });
  const volumes = [{ name: "v", flexVolume: { driver: "example.com/disk" } }];
  for (const node of ["a", "b"]) bench.client.put(pods, aPod({ name: `web-${node}`, nodeName: node, spec: { volumes } }));
  await bench.run(newAttachDetachController(bench.ctx));
  await waitFor(() => bench.listOn("a") && bench.listOn("b"));
  assert.deepEqual(bench.listOn("b"), [{ name: "example.com/disk/v", devicePath: device }]);
});
