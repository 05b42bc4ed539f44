/** What plugins note down for later calls about the same pod, by a key of their own. */
export type CycleState = Map<string, unknown>;

/** Notes that change when a pod is added to or taken off a node on trial. */
export interface Cloneable {
  clone(): unknown;
}

/** What a plugin wrote in an earlier call. @throws when it did not: a bug in the order of calls. */
export function readState<T>(state: CycleState, key: string): T {
  if (!state.has(key)) throw new Error(`no cycle state ${key}`);
  return state.get(key) as T;
}

/** A state to try things with: notes that can change are copied, the others shared. */
export function cloneState(state: CycleState): CycleState {
  const copy: CycleState = new Map();
  for (const [key, value] of state) copy.set(key, isCloneable(value) ? value.clone() : value);
  return copy;
}

const isCloneable = (value: unknown): value is Cloneable =>
  typeof value === "object" && value !== null && typeof (value as Partial<Cloneable>).clone === "function";
