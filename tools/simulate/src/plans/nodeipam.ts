import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { mostNodes } from "../cluster/shape.ts";
import type { View } from "../invariants/view.ts";
import { allFaults, lasting, type Plan } from "./plan.ts";

/** Number of nodes created by the user, besides those that every cluster has. */
const passing = 2;
const rounds = 3;

/** Nodes come and go, more than there are Pod CIDRs: each existing node has one, and no two have the same. */
export const nodeIpamPlan: Plan = {
  name: "nodeipam",
  controllers: ["nodeipam"],
  faults: allFaults,
  rules: lasting,
  // Eight CIDRs, fewer than the number of nodes ever created.
  managerFlags: async () => ["--allocate-node-cidrs=true", "--cluster-cidr=10.8.0.0/24", "--node-cidr-mask-size=27"],
  async act(user) {
    for (let round = 0; round < rounds; round++) {
      const names = Array.from({ length: passing }, (_, at) => `passing-${at}`);
      for (const name of names) await user.create(nodes, { metadata: { name } });
      await user.pause(user.random() * 6_000);
      if (round < rounds - 1) for (const name of names) await user.remove(nodes, name);
    }
  },
  missing(view) {
    const all = view.all("minions");
    if (all.length < passing || all.length > mostNodes + passing) return `there are ${all.length} nodes`;
    const without = all.find(({ spec }) => !spec?.podCIDR);
    return without === undefined ? shared(view) : `${without.metadata.name} has no pod CIDR`;
  },
};

function shared(view: View): string | undefined {
  const holders = new Map<string, string>();
  for (const { metadata, spec } of view.all("minions")) {
    const other = holders.get(spec.podCIDR);
    if (other !== undefined) return `${other} and ${metadata.name} both have ${spec.podCIDR}`;
    holders.set(spec.podCIDR, metadata.name ?? "");
  }
  return undefined;
}
