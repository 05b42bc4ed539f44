/** Resolves in the next iteration of the event loop, after what came in was read and timers ran. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
