/** What plugins note down for later calls about the same pod, by a key of their own. */
export type CycleState = Map<string, unknown>;

/** What a plugin wrote in an earlier call. @throws when it did not: a bug in the order of calls. */
export function readState<T>(state: CycleState, key: string): T {
  if (!state.has(key)) throw new Error(`no cycle state ${key}`);
  return state.get(key) as T;
}
