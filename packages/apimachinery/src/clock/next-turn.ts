/** Lets everybody else have a turn of the event loop: what came in is read, timers run. Work that goes on for long asks for it now and then. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
