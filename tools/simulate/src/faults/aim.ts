/** One thing that goes wrong for one controller, which has a separate controller manager then; nothing else does. */
export interface Aim {
  readonly controller: string;
  readonly pattern: AimPattern;
  /** At which of its writes. */
  readonly nth: number;
}

/**
 * What a controller can meet:
 * `intermediate state`: it crashes when the write was carried out, and another life finds the work half done;
 * `stale state`: after a crash it reads from a server whose caches show what was before the write;
 * `unobserved`: it cannot read for a while after the write, nor catch up on what came and went meanwhile;
 * `lost`: the write does not arrive; `unheard`: it does, but not its answer.
 */
const aimPatterns = ["intermediate state", "stale state", "unobserved", "lost", "unheard"] as const;
type AimPattern = (typeof aimPatterns)[number];

const mostWrites = 6;
/** Of lives in small clusters. */
const aimedShare = 0.35;

/** @returns undefined for lives whose faults are not aimed at a write */
export function drawAim(random: () => number, controllers: readonly string[]): Aim | undefined {
  if (random() >= aimedShare) return undefined;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  return { controller: pick(controllers), pattern: pick(aimPatterns), nth: 1 + Math.floor(random() * mostWrites) };
}

export const describeAim = ({ controller, pattern, nth }: Aim): string => `${pattern} of ${controller} at write ${nth}`;

/** The controller manager that runs the controller alone. */
export const aimedManager = "manager-1";
