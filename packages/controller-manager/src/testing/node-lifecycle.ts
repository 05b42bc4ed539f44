import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { TestContext } from "./test-context.ts";

/** Advances the clock in steps of 5 s while the nodes `alive` renew their leases. */
export async function pass({ client, clock }: TestContext, seconds: number, ...alive: readonly string[]): Promise<void> {
  for (let i = 0; i < seconds; i += 5) {
    for (const name of alive) {
      const renewTime = new Date(clock.now()).toISOString().replace("Z", "000Z");
      client.put(leases, { metadata: { namespace: "kube-node-lease", name }, spec: { renewTime } } as Lease);
    }
    await clock.advance(5000);
  }
}

/** The node reports a change of its Ready condition. */
export function reports({ client, clock }: TestContext, name: string, status: "True" | "False"): void {
  const node = client.object<Node>(nodes, name) as Node;
  const at = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  const conditions = [{ type: "Ready", status, lastHeartbeatTime: at, lastTransitionTime: at }];
  client.put(nodes, { ...node, status: { ...node.status, conditions } });
}

/** Taints of a node as `<key>:<effect>`, sorted. */
export const taintsOf = ({ client }: TestContext, name: string): string[] =>
  (client.object<Node>(nodes, name)?.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).toSorted();

export const podNames = ({ client }: TestContext): (string | undefined)[] =>
  client.objects(pods).map(({ metadata }) => metadata.name);

/** Whether a Pod of the default namespace is ready; undefined without a Pod of that name. */
export const isReady = ({ client }: TestContext, name: string): boolean | undefined =>
  client
    .object<Pod>(pods, `default/${name}`)
    ?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
