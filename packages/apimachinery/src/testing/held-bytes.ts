import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

/** Memory in use in bytes (heap and external) after a full garbage collection. */
export function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Whether nothing holds the object any more. To be awaited: what a synchronous function has touched stays until it returns. */
export async function isReleased(object: WeakRef<object>): Promise<boolean> {
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  return object.deref() === undefined;
}
