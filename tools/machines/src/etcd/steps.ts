import { existsSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { peerUrl } from "../control-plane/flags.ts";
import { etcdStep, startEtcd, waitForEtcd } from "../control-plane/steps.ts";
import { until } from "../host/until.ts";
import type { Machine } from "../machine.ts";
import type { Step } from "../steps.ts";
import { type EtcdClient, etcdClient, isNotInSync, isTooManyLearners, isUnhealthy, type Member } from "./client.ts";
import { initialMembers, nextStep } from "./join-plan.ts";

const hasData = ({ cluster }: Machine): boolean => existsSync(join(cluster.etcdDataDir, "member"));
const learnerMs = 600_000;

/** Adds an etcd member on this machine: a learner until it has caught up. @param others finds the client URLs of members */
export function etcdJoinStep(others: () => Promise<readonly string[]>): Step<Machine> {
  return {
    name: "etcd-join",
    async missing(machine) {
      const own = peerUrl(machine.node);
      if (!canAsk()) return [`add ${own} to etcd as a learner`, "start etcd", "promote the learner when it has caught up"];
      return withClient(await others(), async (client) => {
        const members = await client.members();
        const local = await etcdStep(initialOf(members)).missing(machine);
        const next = nextStep(members, own, hasData(machine));
        const lines = {
          nothing: [],
          add: [`add ${own} to etcd as a learner`, "promote it when it has caught up"],
          remove: [`remove the lost member ${own} from etcd and add it as a learner`, "promote it when it has caught up"],
          promote: ["promote the learner when it has caught up"],
        }[next.do];
        return [...lines, ...local];
      });
    },
    run: async (machine) => withClient(await others(), (client) => joinEtcd(machine, client)),
  };
}

const initialOf =
  (members: readonly Member[]) =>
  ({ node }: Machine) =>
    ({ state: "existing", members: initialMembers(members, node.name, peerUrl(node)) }) as const;

/** False in a dry run before the certificates exist. */
function canAsk(): boolean {
  try {
    etcdClient([]).close();
    return true;
  } catch {
    return false;
  }
}

async function withClient<T>(urls: readonly string[], use: (client: EtcdClient) => Promise<T>): Promise<T> {
  const client = etcdClient(urls);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

async function joinEtcd(machine: Machine, client: EtcdClient): Promise<void> {
  const own = peerUrl(machine.node);
  for (;;) {
    const members = await client.members();
    const next = nextStep(members, own, hasData(machine));
    switch (next.do) {
      case "remove":
        await client.remove(next.id);
        break;
      case "add":
        // etcd accepts one learner at a time, and none while a recently added member is not connected.
        await until(() => unless(client.addLearner(own), (text) => isTooManyLearners(text) || isUnhealthy(text)), {
          timeoutMs: learnerMs,
          everyMs: 1_000,
          what: "etcd to admit another learner",
        });
        break;
      case "promote":
        await startEtcd(machine, initialOf(members)(machine));
        await until(
          () =>
            unless(
              client.promote(next.id).then(() => true),
              isNotInSync,
            ),
          {
            timeoutMs: learnerMs,
            everyMs: 500,
            what: "the learner to catch up with etcd's leader",
          },
        );
        machine.print("[etcd-join] the learner has caught up and is a voting member");
        break;
      case "nothing":
        if ((await etcdStep(initialOf(members)).missing(machine)).length > 0) await etcdStep(initialOf(members)).run(machine);
        await waitForEtcd();
        return;
    }
  }
}

/** @returns undefined when the call failed with an expected error */
async function unless<T>(call: Promise<T>, isExpected: (text: string) => boolean): Promise<T | undefined> {
  try {
    return await call;
  } catch (err) {
    if (isExpected(messageOf(err))) return undefined;
    throw err;
  }
}
