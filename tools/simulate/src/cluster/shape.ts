import type { Aim } from "../faults/aim.ts";

/** Size of a cluster and its optional features; drawn for each simulation. */
export interface Shape {
  /** True for most simulations: the smallest cluster that the plan needs; its user does less, too. */
  readonly isSmall: boolean;
  readonly servers: number;
  readonly managers: number;
  /** 0: Pods are bound by `runBinder`. */
  readonly schedulers: number;
  readonly nodes: number;
  /** Flags for leader election. */
  readonly leases: readonly string[];
  /** false: events are not stored, because no program depends on them. */
  readonly storesEvents: boolean;
}

export const mostNodes = 3;
/** Share of simulations with small clusters. */
const smallShare = 0.95;

const usualLeases: readonly string[] = [];
/** Leadership passes on after about the usual time, with less than half of the requests. */
const slowLeases = [
  "--leader-elect-lease-duration=12s",
  "--leader-elect-renew-deadline=9s",
  "--leader-elect-retry-period=5s",
] as const;
const noLeases = ["--leader-elect=false"] as const;

/** Small clusters take a quarter of the time, and faults hit the same process more often. */
export function drawShape(random: () => number, plan: { readonly managers?: number }): Shape {
  const oneOrTwo = (twice: number): number => (random() < twice ? 2 : 1);
  if (random() < smallShare) {
    const managers = plan.managers ?? oneOrTwo(0.15);
    return {
      isSmall: true,
      servers: oneOrTwo(0.2),
      managers,
      schedulers: 0,
      nodes: 2,
      leases: managers > 1 ? slowLeases : noLeases,
      storesEvents: false,
    };
  }
  return {
    isSmall: false,
    servers: oneOrTwo(0.5),
    managers: plan.managers ?? oneOrTwo(0.5),
    schedulers: oneOrTwo(0.25),
    nodes: 1 + oneOrTwo(0.5),
    leases: random() < 0.75 ? slowLeases : usualLeases,
    storesEvents: random() < 0.25,
  };
}

/** The shape for a fault that is aimed at one controller: only that controller's view of the cluster matters. */
export const aimed = (shape: Shape, { pattern }: Aim): Shape => ({
  ...shape,
  servers: pattern === "stale state" ? 2 : 1,
  managers: 2,
  leases: noLeases,
});

const leasesOf = ({ leases }: Shape): string => (leases === noLeases ? "no" : leases === slowLeases ? "slow" : "usual");

export const describe = (shape: Shape): string =>
  `${shape.servers} API servers, ${shape.managers} managers, ${shape.schedulers} schedulers, ${shape.nodes} nodes, ${leasesOf(shape)} leases, ${shape.storesEvents ? "events" : "no events"}`;
