/** What the part follows: which changes make it look at the kernel, and which do not. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "../flags.ts";
import type { PartContext } from "../part.ts";
import { aNode } from "../testing/machines.ts";
import { startPodNetwork } from "./part.ts";

const eth0 = { ifname: "eth0", mtu: 1500, flags: ["UP"], addr_info: [{ local: "192.168.77.1", prefixlen: 24 }] };

async function start(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "cox-pod-network-part-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const configFolder = join(folder, "etc/cni/net.d");
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects: [[nodes, aNode("m1", ["10.77.1.0/24"], ["192.168.77.1"])]] });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  const events: string[] = [];
  let looks = 0;
  const flags = {
    ...{ "pod-network-mode": "auto", "pod-network-bridge": "cox0", "pod-network-name": "coxswain", "pod-network-mtu": 0 },
    ...{ "pod-network-vxlan-id": 99, "pod-network-vxlan-port": 8472, "cluster-cidr": [], "cni-conf-dir": configFolder },
    ...{ "cni-bin-dir": [folder], "cni-data-dir": "/data", "iptables-chain-prefix": "COX-", "iptables-sync-period": 3_600_000 },
  };
  const context = {
    ...{ flags: flags as unknown as ServicesFlags, informers, nodeName: "m1", log: discardLogger, clock, fail: assert.fail },
    ...{ metrics: newMetricsRegistry(), signal: ending.signal },
    recorder: {
      event: ({ kind, name, uid }: Record<string, string>, type: string, reason: string) =>
        void events.push([kind, name, uid, type, reason].join(" ")),
    },
  } as unknown as PartContext;
  informers.start(ending.signal);
  const part = await startPodNetwork(context, {
    async run(command, args) {
      if ([command, ...args].join(" ") !== "ip -j -d address show") return "";
      looks++;
      return JSON.stringify([eth0]);
    },
    hasIpv6: async () => false,
    forward() {},
  });
  const stop = async (): Promise<void> => {
    ending.abort(new Error("the part ends"));
    await part.stop?.();
  };
  t.after(stop);
  /** How often the kernel was looked at since the last call; waits until only the next periodic look is due. */
  const looked = async (): Promise<number> => {
    await settle();
    await waitFor(async () => {
      if (clock.nextDue === undefined) return false; // it reads files
      if (clock.nextDue - clock.now() > 60_000) return true;
      await clock.advance(1_000);
      return false;
    });
    const before = looks;
    looks = 0;
    return before;
  };
  return { client, part, events, looked, stop, configFolder };
}

test("the kernel is looked at again when the pod range or an address of a Node changes, or a Node comes or goes", async (t) => {
  const { client, looked } = await start(t);
  await looked();
  const own = client.object<Node>(nodes, "m1") as Node;
  const put = (name: string, ranges: string[], addresses: string[]): void =>
    void client.put(nodes, aNode(name, ranges, addresses));
  for (const [what, change, want] of [
    ["a node that comes", () => put("m2", ["10.77.2.0/24"], ["192.168.77.2"]), 1],
    ["a heartbeat", () => client.put(nodes, { ...own, metadata: { ...own.metadata, annotations: { beat: "1" } } }), 0],
    ["an address", () => put("m2", ["10.77.2.0/24"], ["192.168.77.3"]), 1],
    ["a range", () => put("m2", ["10.77.3.0/24"], ["192.168.77.3"]), 1],
    ["a second range", () => put("m2", ["10.77.3.0/24", "fd77:3::/64"], ["192.168.77.3"]), 1],
    ["a node that goes", () => client.remove(nodes, "m2"), 1],
  ] as const) {
    change();
    assert.equal(Math.min(1, await looked()), want, what);
  }
});

test("another network's configuration is noticed when it is written; after the end the folder is not watched", async (t) => {
  const watchers = () => process.getActiveResourcesInfo().filter((kind) => kind === "FSEventWrap").length;
  await waitFor(() => watchers() === 0, { what: "the end of those of an earlier test" });
  const { looked, stop, configFolder, events } = await start(t);
  await looked();
  writeFileSync(join(configFolder, "05-other.conflist"), JSON.stringify({ cniVersion: "0.4.0", name: "other", plugins: [{}] }));
  await waitFor(
    async () => {
      await looked();
      return events.includes("Node m1 m1 Normal OtherPodNetwork");
    },
    { timeoutMs: 10_000, what: "the event" },
  );
  assert.equal(watchers(), 1);
  await stop();
  await waitFor(() => watchers() === 0);
});

test("the part's health is that of the network", async (t) => {
  const { part, looked, events } = await start(t);
  await looked();
  assert.throws(() => part.check?.(), /bridge/, "the folder has no plugins");
  assert.match(events.join("; "), /^Node m1 m1 Warning \w+$/);
});
