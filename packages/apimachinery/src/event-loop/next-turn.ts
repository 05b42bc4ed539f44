/** Resolves in the next event-loop iteration, after I/O and timers. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
