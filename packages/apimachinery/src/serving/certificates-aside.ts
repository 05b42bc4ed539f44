import { extname } from "node:path";
import { newWorkerQueue } from "../process/event-loop/worker-queue.ts";
import type { CertificateAnswer, CertificateJob, RequestOptions, ServingPair, ServingPairOptions } from "./certificate-thread.ts";
import type { newCertificateRequest } from "./certificates.ts";

/**
 * Certificates that a daemon needs for itself, made in a worker thread: to load the certificate library blocks the event loop for 100 ms,
 * and a daemon that uses it once would keep its 4 MB as long as it runs.
 */

/**
 * Creates a serving certificate and the authority that signed it, whose key is discarded.
 * @throws Error for alternative names that cannot be in a certificate
 */
export async function pairOfTemporaryAuthority(options: ServingPairOptions): Promise<ServingPair> {
  return (await answerTo({ kind: "pair", options })) as ServingPair; // cast: the answer to this kind of job
}

/** As `newCertificateRequest`. */
export async function newCertificateRequestAside(options: RequestOptions): ReturnType<typeof newCertificateRequest> {
  return (await answerTo({ kind: "request", options })) as Awaited<ReturnType<typeof newCertificateRequest>>; // cast: as above
}

async function answerTo(job: CertificateJob): Promise<CertificateAnswer> {
  const answer = await thread.run(job);
  if ("failure" in answer) throw new Error(answer.failure);
  return answer;
}

const thread = newWorkerQueue<CertificateJob, CertificateAnswer | { readonly failure: string }>({
  file: new URL(`./certificate-thread${extname(import.meta.url)}`, import.meta.url),
  heapMb: 128,
  timeoutMs: 60_000,
  idleMs: 1_000,
});
