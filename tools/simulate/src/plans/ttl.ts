import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { allFaults, lasting, type Plan } from "./plan.ts";

const annotation = "node.alpha.kubernetes.io/ttl";
const names = ["passing-0", "passing-1"] as const;
const target = (name: string) => ({ namespace: "", name });

/** Nodes are created and deleted, and a user changes their TTL annotation: each gets the TTL of a cluster of up to 100 nodes, 0. */
export const ttlPlan: Plan = {
  name: "ttl",
  controllers: ["ttl"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    for (const name of names) await user.create(nodes, { metadata: { name, annotations: { [annotation]: "15" } } });
    await user.pause(user.random() * 6_000);
    const [first, second] = names;
    await user.remove(nodes, first);
    await user.change(nodes, target(second), ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [annotation]: user.random() < 0.5 ? "300" : "no number" };
    });
    await user.pause(user.random() * 4_000);
    await user.create(nodes, { metadata: { name: first } });
  },
  missing(view) {
    const wrong = view.all("minions").find(({ metadata }) => metadata.annotations?.[annotation] !== "0");
    return wrong === undefined ? undefined : `${wrong.metadata.name} has the TTL ${wrong.metadata.annotations?.[annotation]}`;
  },
};
