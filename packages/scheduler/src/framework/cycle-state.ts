/** Data that plugins pass between extension points of one pod's scheduling cycle, each under its own key. */
export type CycleState = Map<string, unknown>;

/** State that `addPod` and `removePod` mutate, and that `cloneState` therefore has to copy. */
export interface Cloneable {
  clone(): unknown;
}

/** @throws Error when no earlier extension point stored the key, which is a bug */
export function readState<T>(state: CycleState, key: string): T {
  if (!state.has(key)) throw new Error(`no cycle state ${key}`);
  return state.get(key) as T; // cast: a plugin reads only the keys that it has stored
}

/** A copy for simulations: Cloneable values are cloned, the others are shared. */
export function cloneState(state: CycleState): CycleState {
  const copy: CycleState = new Map();
  for (const [key, value] of state) copy.set(key, isCloneable(value) ? value.clone() : value);
  return copy;
}

const isCloneable = (value: unknown): value is Cloneable =>
  typeof value === "object" && value !== null && "clone" in value && typeof value.clone === "function";
