import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { mountsBelow } from "./mounts.ts";
import { interfaces, podLogs, type Remains, removeKinds } from "./remains.ts";
import { defaultChoices, newSettings } from "./settings.ts";

const settings = newSettings("/clone", "default", "/clone/.cox", defaultChoices(), {});

/** Something that goes when it was removed a number of times. */
function kind(name: string, removals: number, calls: string[]): Remains {
  let left = removals;
  return {
    find: () => (left > 0 ? [name] : []),
    remove() {
      calls.push(name);
      left--;
    },
  };
}

test("what remains is removed in order, and tried again while something is left", async () => {
  const calls: string[] = [];
  const pauses: number[] = [];
  const kinds = [kind("process", 1, calls), kind("mount", 2, calls), kind("none", 0, calls), kind("bridge", 1, calls)];
  assert.deepEqual(await removeKinds(kinds, settings, async (ms) => pauses.push(ms)), []);
  assert.deepEqual([calls, pauses], [["process", "mount", "bridge", "mount"], [300]]);
});

test("what is left after three times is reported, in full", async () => {
  const calls: string[] = [];
  let pauses = 0;
  const kinds = [kind("a", 4, calls), kind("b", 3, calls), kind("c", 9, calls)];
  assert.deepEqual(await removeKinds(kinds, settings, async () => pauses++), ["a", "c"]);
  assert.deepEqual([calls.join(""), pauses], ["abcabcabc", 2]);
});

test("mounts below a cluster's folders are found in their order, with their real names", () => {
  const line = (path: string): string => `36 35 98:0 /root ${path} rw,noatime master:1 - ext3 /dev/root rw\n`;
  const text = ["/", "/clone/.cox", "/run/cox-1/a", "/run/cox-12/b", "/clone/.cox/kubelet/a\\040b\\134c", "/run/cox-1/a/deep"];
  assert.deepEqual(mountsBelow(["/run/cox-1", "/clone/.cox"], text.map(line).join("")), [
    "/run/cox-1/a",
    "/clone/.cox/kubelet/a b\\c",
    "/run/cox-1/a/deep",
  ]);
});

function folderWith(t: TestContext, ...folders: string[]): string {
  const root = mkdtempSync(join(tmpdir(), "cox-remains-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const folder of folders) mkdirSync(join(root, folder), { recursive: true });
  return root;
}

test("a cluster's interfaces are its bridge, last, and the pods' ends on it; a user's own are left alone", (t) => {
  const devices = folderWith(t, "coxa/brif/veth1", "coxa/brif/eth1", "coxa/brif/veth2", "coxb", "veth9");
  assert.deepEqual(interfaces({ bridge: "coxa" }, devices), ["veth1", "veth2", "coxa"]);
  assert.deepEqual(interfaces({ bridge: "coxb" }, devices), ["coxb"]);
  assert.deepEqual(interfaces({ bridge: "coxc" }, devices), []);
});

test("the logs of a cluster's pods are told from other clusters' by the pod's UID", (t) => {
  const root = folderWith(
    t,
    "state/kubelet/pods/uid-1",
    "state/kubelet/pods/a_b",
    "logs/default_web_uid-1",
    "logs/default_web_uid-2",
  );
  mkdirSync(join(root, "logs", "kube_system_x_uid-1"));
  writeFileSync(join(root, "logs", "uid-1"), "");
  assert.deepEqual(
    podLogs({ state: join(root, "state") }, join(root, "logs")).toSorted(),
    ["default_web_uid-1", "kube_system_x_uid-1", "uid-1"].map((name) => join(root, "logs", name)),
  );
  assert.deepEqual(podLogs({ state: join(root, "none") }, join(root, "logs")), []);
});
