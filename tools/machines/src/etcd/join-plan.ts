/** Decides how a machine becomes a member of etcd. Pure. */
import type { Member } from "./client.ts";

type JoinStep =
  /** Add this machine as a learner. */
  | { readonly do: "add" }
  /** Remove the former member of this machine, whose data is lost: it cannot rejoin under its old identity. */
  | { readonly do: "remove"; readonly id: string }
  /** Start the learner if necessary, and promote it once it has caught up. */
  | { readonly do: "promote"; readonly id: string }
  | { readonly do: "nothing" };

/**
 * The next step, computed from etcd's member list; computed again after each step and after a failure.
 * @param hasData whether this machine has the data of a member
 */
export function nextStep(members: readonly Member[], peerUrl: string, hasData: boolean): JoinStep {
  const own = members.find(({ peerUrls }) => peerUrls.includes(peerUrl));
  if (own === undefined) return { do: "add" };
  const hasStarted = own.name !== "";
  if (hasStarted && !hasData) return { do: "remove", id: own.id };
  return own.isLearner ? { do: "promote", id: own.id } : { do: "nothing" };
}

/** `--initial-cluster` of a member that joins: those that have started, and itself. */
export function initialMembers(members: readonly Member[], name: string, peerUrl: string): Record<string, string> {
  const started = members.filter((member) => member.name !== "" && !member.peerUrls.includes(peerUrl));
  return { ...Object.fromEntries(started.map((member) => [member.name, member.peerUrls[0] ?? ""])), [name]: peerUrl };
}
