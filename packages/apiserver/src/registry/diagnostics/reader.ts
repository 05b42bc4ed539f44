import type { Client } from "@coxswain/apimachinery/client/client";
import type { DecisionAnswers, DecisionReader, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { kubeletRecipient, nodeOfRecipient } from "@coxswain/apimachinery/decisions/question";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { apiserverRecipient, type Questions, type Recipient } from "./questions.ts";

interface ClusterDecisionsOptions {
  readonly questions: Questions;
  /** Decisions of this server. */
  readonly decisions: DecisionLog;
  /** Client with the permissions of the server itself. */
  readonly client: Client;
  /** Number of API servers, including this one. */
  readonly servers: () => Promise<number>;
  readonly clock: Clock;
}

/** Limit for one question; other objects are explained from their statuses alone. */
const mostRefs = 500;

/** Reads the decisions of this server, and queries the other servers and the daemons involved. */
export class ClusterDecisions implements DecisionReader {
  readonly #options: ClusterDecisionsOptions;

  constructor(options: ClusterDecisionsOptions) {
    this.#options = options;
  }

  async of(given: readonly ObjectRef[], signal: AbortSignal): Promise<DecisionAnswers> {
    const { questions, decisions } = this.#options;
    const refs = given.slice(0, mostRefs);
    const own = refs.flatMap((ref) => decisions.of(ref));
    if (refs.length === 0) return { decisions: [], silent: [] };
    const { requested, dead } = await this.#recipients(refs);
    const answers = await questions.query(requested, signal);
    return { decisions: [...own, ...answers.decisions], silent: [...dead, ...answers.silent].map(shown) };
  }

  /** @returns recipients with the objects to query; `dead`: kubelets that do not renew their leases */
  async #recipients(refs: readonly ObjectRef[]): Promise<{ requested: Map<string, Recipient>; dead: string[] }> {
    const requested = new Map<string, Recipient>();
    const dead: string[] = [];
    const ofPods = refs.filter(isPod);
    const central = async (name: string, about: readonly ObjectRef[]): Promise<void> => {
      if (about.length > 0) requested.set(name, { refs: about, expected: (await this.#holder("kube-system", name)) === true });
    };
    const byNode = new Map<string, ObjectRef[]>();
    const add = (node: string | undefined, ref: ObjectRef): void => {
      if (node) byNode.getOrInsertComputed(node, () => []).push(ref);
    };
    for (const ref of refs) if (ref.group === "" && ref.resource === "nodes") add(ref.name, ref);
    await Promise.all(ofPods.map(async (ref) => add((await this.#get<Pod>(pods, ref))?.spec?.nodeName, ref)));
    await Promise.all([
      central("kube-controller-manager", refs),
      central("kube-scheduler", ofPods),
      this.#options.servers().then((servers) => {
        if (servers > 1) requested.set(apiserverRecipient, { refs, expected: true, answers: servers - 1 });
      }),
      ...Array.from(byNode, async ([node, about]) => {
        const recipient = kubeletRecipient(node);
        const alive = await this.#holder("kube-node-lease", node);
        if (alive === false) dead.push(recipient);
        else requested.set(recipient, { refs: about, expected: alive === true });
      }),
    ]);
    return { requested, dead };
  }

  /** @returns whether the lease is held; undefined when there is none */
  async #holder(namespace: string, name: string): Promise<boolean | undefined> {
    const spec = (await this.#get<Lease>(leases, { namespace, name }))?.spec;
    if (spec?.holderIdentity === undefined || spec.renewTime === undefined) return undefined;
    if (spec.holderIdentity === "") return false;
    const renewed = parseTime(spec.renewTime ?? "") ?? 0;
    return this.#options.clock.now() < renewed + (spec.leaseDurationSeconds ?? 0) * 1000;
  }

  /** Reads from the watch cache (any resourceVersion). */
  async #get<T extends object>(ref: ResourceRef, target: { namespace: string; name: string }): Promise<T | undefined> {
    try {
      return await this.#options.client.get<T>(ref, target, { resourceVersion: "0" });
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }
}

const isPod = ({ group, resource }: ObjectRef): boolean => group === "" && resource === "pods";

/** `kubelet/n1` */
function shown(recipient: string): string {
  const node = nodeOfRecipient(recipient);
  return node === undefined ? recipient : `kubelet/${node}`;
}
