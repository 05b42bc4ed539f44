import { extname } from "node:path";
import { newWorkerQueue } from "../process/event-loop/worker-queue.ts";
import type { PairAnswer, ServingPair, ServingPairOptions } from "./certificate-thread.ts";

/**
 * Creates a serving certificate and the authority that signed it, whose key is discarded. Happens in a worker thread: the
 * certificate library needs 4 MB, which a daemon that only makes its own certificate would keep as long as it runs.
 * @throws Error for alternative names that cannot be in a certificate
 */
export async function pairOfTemporaryAuthority(options: ServingPairOptions): Promise<ServingPair> {
  const answer = await thread.run(options);
  if ("failure" in answer) throw new Error(answer.failure);
  return answer;
}

const thread = newWorkerQueue<ServingPairOptions, PairAnswer>({
  file: new URL(`./certificate-thread${extname(import.meta.url)}`, import.meta.url),
  heapMb: 128,
  timeoutMs: 60_000,
  idleMs: 1_000,
});
