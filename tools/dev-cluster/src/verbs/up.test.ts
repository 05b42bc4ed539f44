import assert from "node:assert/strict";
import { test } from "node:test";
import { Command } from "commander";
import { requestedByFlags, upVerb } from "./up.ts";

test("flags that are not given request nothing; --node again means no fake nodes, unless some are requested, too", () => {
  assert.deepEqual(requestedByFlags({}), {});
  assert.deepEqual(requestedByFlags({ node: true }), { withNode: true, fakeNodes: 0 });
  assert.deepEqual(requestedByFlags({ node: true, fakeNodes: 3 }), { withNode: true, fakeNodes: 3 });
  assert.deepEqual(requestedByFlags({ node: false }), { withNode: false });
  assert.deepEqual(requestedByFlags({ fakeNodes: 0 }), { fakeNodes: 0 });
});

test("a file is found from where the command was given, and an empty name is none", () => {
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "" }), { auditPolicy: "" });
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "/p.yaml" }), { auditPolicy: "/p.yaml" });
  assert.deepEqual(requestedByFlags({ auditPolicyFile: "p.yaml" }), { auditPolicy: `${process.cwd()}/p.yaml` });
});

test("each port and each daemon's flags are requested by themselves", () => {
  assert.deepEqual(requestedByFlags({ etcdPort: 1, kubeletPort: 0 }), { ports: { etcd: 1, kubelet: 0 } });
  assert.deepEqual(requestedByFlags({ kubeletArg: ["--v=4"], kubeSchedulerArg: [] }), {
    extraArgs: { kubelet: ["--v=4"], "kube-scheduler": [] },
  });
});

/** Settings requested by a command line of `up`, without running it. */
function requestedBy(...args: string[]): ReturnType<typeof requestedByFlags> {
  const verb = upVerb("/clone");
  let requested: ReturnType<typeof requestedByFlags> = {};
  verb.action((options) => {
    requested = requestedByFlags(options);
  });
  new Command().addCommand(verb).parse(["up", ...args], { from: "user" });
  return requested;
}

test("flags of up become settings; flags that are not given set nothing", () => {
  assert.deepEqual(requestedBy(), {});
  assert.deepEqual(
    requestedBy("--node-name=n", "--pod-network-cidr=10.1.0.0/16", "--etcd-peer-port=1", "--no-node", "--etcd-unsafe-no-fsync"),
    { nodeName: "n", podCidr: "10.1.0.0/16", ports: { etcdPeer: 1 }, withNode: false, etcdWithoutSync: true },
  );
  assert.deepEqual(requestedBy("--node", "--no-etcd-unsafe-no-fsync", "--audit-policy-file="), {
    withNode: true,
    fakeNodes: 0,
    etcdWithoutSync: false,
    auditPolicy: "",
  });
  assert.deepEqual([requestedBy("--fake-nodes=3"), requestedBy("--fake-nodes=0")], [{ fakeNodes: 3 }, { fakeNodes: 0 }]);
  assert.deepEqual(requestedBy("--kubelet-arg", "max-pods=50", "--kubelet-arg=--v=4", "--etcd-arg="), {
    extraArgs: { kubelet: ["--max-pods=50", "--v=4"], etcd: [] },
  });
});

test("a flag of a daemon may have a value of several lines, and one without a name is refused", (t) => {
  assert.deepEqual(requestedBy("--kubelet-arg", "text=a\nb"), { extraArgs: { kubelet: ["--text=a\nb"] } });
  assert.deepEqual(requestedBy("--kubelet-arg", "v"), { extraArgs: { kubelet: ["--v"] } });
  t.mock.method(process.stderr, "write", () => true);
  for (const wrong of ["=1", "--", "1=2", "a b=1"]) {
    const verb = upVerb("/clone").exitOverride();
    assert.throws(() => verb.parse(["--kubelet-arg", wrong], { from: "user" }), { code: "commander.invalidArgument" }, wrong);
  }
});

for (const [count, want] of [
  ["0", 0],
  ["1000", 1_000],
  ["1001", undefined],
  ["-1", undefined],
  ["1.0", undefined],
] as const)
  test(`${count} fake nodes are ${want === undefined ? "refused" : "accepted"}`, (t) => {
    t.mock.method(process.stderr, "write", () => true);
    const parse = () => requestedBy(`--fake-nodes=${count}`);
    if (want !== undefined) assert.deepEqual(parse(), { fakeNodes: want });
    else {
      const verb = upVerb("/clone").exitOverride();
      assert.throws(() => verb.parse([`--fake-nodes=${count}`], { from: "user" }), /whole number from 0 to 1000/);
    }
  });
