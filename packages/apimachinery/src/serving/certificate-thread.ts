/** Worker thread of `temporary-authority.ts`; processes jobs sequentially. */
import { parentPort } from "node:worker_threads";
import { causesOf } from "../objects/errors/message.ts";
import { newCa, newCertificate } from "./certificates.ts";

export interface ServingPairOptions {
  /** Common name of the authority. */
  readonly authority: string;
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
  /** Validity of both certificates. */
  readonly validDays: number;
}

export interface ServingPair {
  readonly caPem: string;
  readonly certPem: string;
  readonly keyPem: string;
}

export type PairAnswer = ServingPair | { readonly failure: string };

async function answerTo({ authority, commonName, dnsNames, ips, validDays }: ServingPairOptions): Promise<PairAnswer> {
  try {
    const ca = await newCa({ commonName: authority, validDays });
    const { certPem, keyPem } = await newCertificate({ commonName, dnsNames, ips, usages: ["server"], validDays, ca });
    return { caPem: ca.certPem, certPem, keyPem };
  } catch (err) {
    return { failure: causesOf(err) };
  }
}

parentPort?.on("message", (job: ServingPairOptions) => void answerTo(job).then((answer) => parentPort?.postMessage(answer)));
