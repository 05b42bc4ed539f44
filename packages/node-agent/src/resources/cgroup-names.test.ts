import assert from "node:assert/strict";
import { test } from "node:test";
import { cgroupfsNames, cgroupName, systemdNames, unitOf } from "./cgroup-names.ts";

const uid = "6c1a4e95-6bb6-11e6-bc26-28d2444e470d";

for (const { name, cgroupfs, systemd } of [
  { name: [], cgroupfs: "/", systemd: "/" },
  { name: [""], cgroupfs: "/", systemd: "/" },
  { name: ["system"], cgroupfs: "/system", systemd: "/system.slice" },
  { name: ["kubepods", ""], cgroupfs: "/kubepods", systemd: "/kubepods.slice" },
  { name: ["system", "Burstable"], cgroupfs: "/system/Burstable", systemd: "/system.slice/system-Burstable.slice" },
  { name: ["Burstable", "pod-123"], cgroupfs: "/Burstable/pod-123", systemd: "/Burstable.slice/Burstable-pod_123.slice" },
  {
    name: ["test", "a", "b", "Burstable"],
    cgroupfs: "/test/a/b/Burstable",
    systemd: "/test.slice/test-a.slice/test-a-b.slice/test-a-b-Burstable.slice",
  },
  {
    name: ["kubepods", "besteffort", `pod${uid}`],
    cgroupfs: `/kubepods/besteffort/pod${uid}`,
    systemd: "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod6c1a4e95_6bb6_11e6_bc26_28d2444e470d.slice",
  },
]) {
  test(`the cgroup [${name.join(" ")}] is ${cgroupfs}, and for systemd ${systemd}`, () => {
    assert.equal(cgroupfsNames.pathOf(name), cgroupfs);
    assert.equal(systemdNames.pathOf(name), systemd);
    const parts = name.filter((part) => part !== "");
    assert.deepEqual(cgroupfsNames.parse(cgroupfs), parts);
    assert.deepEqual(systemdNames.parse(systemd), parts);
  });
}

for (const { path, want } of [
  { path: "/test", want: ["test"] },
  { path: "/test.slice", want: ["test"] },
  { path: "system.slice", want: ["system"] },
  { path: "/kube.slice/kube-daemons.slice", want: ["kube", "daemons"] },
]) {
  test(`${path} in a configuration for systemd means the cgroup [${want.join(" ")}]`, () =>
    assert.deepEqual(systemdNames.parse(path), want));
}

test("a pod's uid is read from the last part of its slice", () => {
  assert.equal(systemdNames.lastOf("kubepods-burstable-pod1234_abcd.slice"), "pod1234-abcd");
  assert.equal(systemdNames.lastOf("memory.stat"), "memory.stat");
  assert.equal(cgroupfsNames.lastOf("pod1234-abcd"), "pod1234-abcd");
});

test("a cgroup name that would be ambiguous in a path is refused", () => {
  for (const part of ["a/b", "a_b"]) {
    assert.throws(() => cgroupName(["kubepods"], part), {
      message: `invalid character in component ["${part}"] of CgroupName`,
    });
  }
  assert.throws(() => systemdNames.pathOf(["a/b"]), { message: "invalid slice name: a/b.slice" });
});

test("a slice's parent is the slice above it, that of a top one is the root", () => {
  assert.deepEqual(unitOf("/kubepods.slice"), { unit: "kubepods.slice", parent: "-.slice" });
  assert.deepEqual(unitOf("/kubepods.slice/kubepods-burstable.slice"), {
    unit: "kubepods-burstable.slice",
    parent: "kubepods.slice",
  });
});
