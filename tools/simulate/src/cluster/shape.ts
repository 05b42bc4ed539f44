/** How large a cluster is and what it does besides its work: each life has another one. */
export interface Shape {
  readonly servers: number;
  readonly managers: number;
  readonly schedulers: number;
  readonly nodes: number;
  /** Flags of leader election. */
  readonly leases: readonly string[];
  /** false: nobody stores events, which no program depends on. */
  readonly storesEvents: boolean;
}

export const mostNodes = 3;

const usualLeases: readonly string[] = [];
/** They pass on after about as long as usual, with less than half of the requests. */
const slowLeases = [
  "--leader-elect-lease-duration=12s",
  "--leader-elect-renew-deadline=9s",
  "--leader-elect-retry-period=5s",
] as const;

/** Small clusters take less time, and faults hit the same process more often. */
export function drawShape(random: () => number): Shape {
  const oneOrTwo = (): number => (random() < 0.5 ? 1 : 2);
  return {
    servers: oneOrTwo(),
    managers: oneOrTwo(),
    schedulers: random() < 0.75 ? 1 : 2,
    nodes: 1 + oneOrTwo(),
    leases: random() < 0.75 ? slowLeases : usualLeases,
    storesEvents: random() < 0.25,
  };
}

export const describe = ({ servers, managers, schedulers, nodes, leases, storesEvents }: Shape): string =>
  `${servers} API servers, ${managers} managers, ${schedulers} schedulers, ${nodes} nodes, ${leases.length > 0 ? "slow" : "usual"} leases, ${storesEvents ? "events" : "no events"}`;
