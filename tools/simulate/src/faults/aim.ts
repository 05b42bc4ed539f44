/** A single fault for one controller, which then runs alone in a controller manager; there are no other faults. */
export interface Aim {
  readonly controller: string;
  readonly pattern: AimPattern;
  /** The number of the controller's write at which the fault occurs. */
  readonly nth: number;
}

/**
 * Fault patterns:
 * `intermediate state`: the controller crashes after the write was executed, and its next incarnation finds the work half done;
 * `stale state`: after a crash it reads from a server whose caches show the state before the write;
 * `unobserved`: its reads fail for a while after the write, and the changes meanwhile are compacted;
 * `lost`: the write does not reach the server; `unheard`: it does, but the response is lost.
 */
const aimPatterns = ["intermediate state", "stale state", "unobserved", "lost", "unheard"] as const;
type AimPattern = (typeof aimPatterns)[number];

const mostWrites = 6;
/** Share of the simulations with small clusters. */
const aimedShare = 0.35;

/** @returns undefined for simulations whose faults are not aimed at a write */
export function drawAim(random: () => number, controllers: readonly string[]): Aim | undefined {
  if (random() >= aimedShare) return undefined;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  return { controller: pick(controllers), pattern: pick(aimPatterns), nth: 1 + Math.floor(random() * mostWrites) };
}

export const describeAim = ({ controller, pattern, nth }: Aim): string => `${pattern} of ${controller} at write ${nth}`;

/** The controller manager that runs only this controller. */
export const aimedManager = "manager-1";
