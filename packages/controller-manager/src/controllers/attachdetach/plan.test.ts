import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { multiAttachMessage } from "./messages.ts";
import { type Attached, planVolume, unmountLimitMs } from "./plan.ts";

const on = (node: string, rest: Partial<Attached> = {}): Attached => ({
  node,
  name: `csi-${node}`,
  attached: true,
  deleting: false,
  inUse: false,
  ...rest,
});

for (const { name, desired = [], attachments = [], exclusive = false, unwantedMs = 0, want } of [
  { name: "nothing to do", want: [] },
  { name: "needed on a node", desired: ["a"], want: [{ do: "attach", node: "a" }] },
  {
    name: "needed and being attached",
    desired: ["a"],
    attachments: [on("a", { attached: false })],
    want: [{ do: "await", node: "a" }],
  },
  { name: "needed and there", desired: ["a"], attachments: [on("a")], want: [{ do: "attached", node: "a" }] },
  {
    name: "needed, and its driver failed",
    desired: ["a"],
    attachments: [on("a", { attached: false, error: "no slot" })],
    want: [{ do: "failed", node: "a", error: "no slot" }],
  },
  {
    name: "needed again while it is detached",
    desired: ["a"],
    attachments: [on("a", { deleting: true })],
    want: [{ do: "failed", node: "a", error: "volume attachment is being deleted" }],
  },
  {
    name: "needed on two nodes",
    desired: ["a", "b"],
    attachments: [on("a")],
    want: [
      { do: "attached", node: "a" },
      { do: "attach", node: "b" },
    ],
  },
  {
    name: "needed where it cannot be twice",
    desired: ["a", "b"],
    attachments: [on("a")],
    exclusive: true,
    want: [
      { do: "attached", node: "a" },
      { do: "refuse", node: "b", others: ["a"] },
    ],
  },
  {
    name: "free, and needed by two that cannot share",
    desired: ["a", "b"],
    exclusive: true,
    want: [
      { do: "attach", node: "a" },
      { do: "refuse", node: "b", others: ["a"] },
    ],
  },
  {
    name: "still on its way from another node",
    desired: ["b"],
    attachments: [on("a", { deleting: true })],
    exclusive: true,
    want: [{ do: "refuse", node: "b", others: ["a"] }],
  },
  { name: "not needed", attachments: [on("a")], want: [{ do: "detach", node: "a", name: "csi-a", forced: false }] },
  { name: "not needed and being detached", attachments: [on("a", { deleting: true })], want: [] },
  {
    name: "not needed, but in use",
    attachments: [on("a", { inUse: true })],
    unwantedMs: 60_000,
    want: [{ do: "hold", node: "a", forMs: unmountLimitMs - 60_000 }],
  },
  {
    name: "not needed for long, and not in use",
    attachments: [on("a")],
    unwantedMs: unmountLimitMs,
    want: [{ do: "detach", node: "a", name: "csi-a", forced: true }],
  },
  {
    name: "not needed for long, though a node that says nothing uses it",
    attachments: [on("a", { inUse: true })],
    unwantedMs: unmountLimitMs,
    want: [{ do: "detach", node: "a", name: "csi-a", forced: true }],
  },
] as {
  name: string;
  desired?: string[];
  attachments?: Attached[];
  exclusive?: boolean;
  unwantedMs?: number;
  want: object[];
}[]) {
  test(`a volume that is ${name}`, () => {
    const now = 1_000_000;
    const unusedSince = () => (unwantedMs === 0 ? undefined : now - unwantedMs);
    assert.deepEqual(planVolume({ desired, attachments, exclusive, unusedSince, now }), want);
  });
}

const here = aPod({ name: "here" });
const away = aPod({ name: "secret", namespace: "other" });
for (const [users, want] of [
  [[], "Volume is already exclusively attached to one node and can't be attached to another"],
  [[aPod({ name: "a" }), aPod({ name: "b" })], "Volume is already used by pod(s) a, b"],
  [[aPod({ name: "a" }), away], "Volume is already used by pod(s) a and 1 pod(s) in different namespaces"],
  [[away], "Volume is already used by 1 pod(s) in different namespaces"],
] as const) {
  test(`reports to a pod: ${want}`, () => {
    assert.equal(multiAttachMessage(here, users, "disk"), `Multi-Attach error for volume "disk" ${want}`);
  });
}
