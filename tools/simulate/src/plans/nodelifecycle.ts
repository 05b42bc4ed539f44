import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { View } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, type User } from "./plan.ts";

/** Nodes of the user, who reports their status. The first one fails at the end, the second one recovers from a failure, the third one never fails. */
const names = ["edge-0", "edge-1", "edge-2"] as const;
const notReady = "node.kubernetes.io/not-ready";
/** Longer than the temporary failure, including all delays of the controllers. */
const longSeconds = 120;

/** When the last of these is evicted, those on the second node would have been evicted, too, had their evictions not been cancelled. */
const evicted = ["leaves-0-1", "leaves-0-2", "leaves-0-3", "leaves-0-4", "waits-0"];

const conditions = (isReady: boolean): object[] => [{ type: "Ready", status: isReady ? "True" : "False" }];

const forSeconds = (tolerationSeconds: number): object => ({ key: notReady, effect: "NoExecute", tolerationSeconds });

const pod = (name: string, nodeName: string, toleration: object): object => ({
  metadata: { name, namespace },
  spec: {
    nodeName,
    // Nothing runs there that would have to be stopped.
    terminationGracePeriodSeconds: 0,
    containers: [{ name: "app", image: "app:1" }],
    tolerations: [{ operator: "Exists", ...toleration }],
  },
});

const report = (user: User, name: string, isReady: boolean): Promise<void> =>
  user.change(
    nodes,
    { namespace: "", name },
    (node) => {
      node.status = { ...node.status, conditions: conditions(isReady) };
    },
    "status",
  );

/** Nodes become not ready and ready again: taints follow, and evict the Pods that do not tolerate them, on those nodes only. */
export const nodeLifecyclePlan: Plan = {
  name: "nodelifecycle",
  controllers: ["podgc", "nodelifecycle"],
  faults: allFaults,
  rules: lasting,
  // The fake nodes do not renew leases, so silence must not count as a failure.
  managerFlags: async () => ["--node-monitor-grace-period=2h"],
  async act(user) {
    for (const [index, name] of names.entries()) {
      await user.create(nodes, { metadata: { name }, status: { conditions: conditions(true) } });
      await user.create(pods, pod(`stays-${index}`, name, {}));
      await user.create(pods, pod(`waits-${index}`, name, forSeconds(longSeconds)));
      // On the second node such a Pod may be evicted or not, and removing it would be the kubelet's task.
      for (const seconds of name === names[1] ? [] : [1, 2, 3, 4])
        await user.create(pods, pod(`leaves-${index}-${seconds}`, name, forSeconds(seconds)));
    }
    await user.pause(user.random() * 4_000);
    for (let turn = 0; turn < (user.isSmall ? 1 : 2); turn++) {
      for (const isReady of [false, true]) {
        await report(user, names[1], isReady);
        await user.pause(user.random() * 10_000);
      }
    }
    await report(user, names[0], false);
    await user.pause(4_000 + user.random() * 4_000);
  },
  deleted({ kind, metadata }) {
    const { name = "" } = metadata;
    return kind === "Pod" && !evicted.includes(name) ? `${name} was evicted` : undefined;
  },
  missing(view) {
    for (const [index, name] of names.entries()) {
      const found = taintsOf(view, name);
      const wanted = index === 0 ? `${notReady}:NoExecute,${notReady}:NoSchedule` : "";
      if (found !== wanted) return `${name} has the taints ${found}`;
    }
    const left = evicted.find((name) => view.get("pods", `${namespace}/${name}`) !== undefined);
    return left === undefined ? undefined : `${left} is still there`;
  },
};

const taintsOf = (view: View, name: string): string =>
  (view.get("minions", name)!.spec?.taints ?? [])
    .map(({ key, effect }: { key: string; effect: string }) => `${key}:${effect}`)
    .toSorted()
    .join();
