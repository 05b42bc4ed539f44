import { closedLoop } from "../load.ts";

const concurrency = 16;

/** Calls `operation` for 0 to `count - 1`, 16 concurrently. @throws the first error */
export async function repeat(count: number, operation: (index: number) => Promise<unknown>): Promise<void> {
  const timed = async (index: number) => {
    await operation(index);
    return { totalMs: 0 };
  };
  await closedLoop(timed, { concurrency, seconds: 600, maxOperations: count });
}
