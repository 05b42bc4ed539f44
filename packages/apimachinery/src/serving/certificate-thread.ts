/** Worker thread of `certificates-aside.ts`; processes jobs sequentially. */
import { parentPort } from "node:worker_threads";
import { causesOf } from "../objects/errors/message.ts";
import { newCa, newCertificate, newCertificateRequest } from "./certificates.ts";

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

export type RequestOptions = Parameters<typeof newCertificateRequest>[0];

export type CertificateJob =
  | { readonly kind: "pair"; readonly options: ServingPairOptions }
  | { readonly kind: "request"; readonly options: RequestOptions };

export type CertificateAnswer = ServingPair | Awaited<ReturnType<typeof newCertificateRequest>>;

async function answerTo(job: CertificateJob): Promise<CertificateAnswer | { readonly failure: string }> {
  try {
    return await (job.kind === "pair" ? newPair(job.options) : newCertificateRequest(job.options));
  } catch (err) {
    return { failure: causesOf(err) };
  }
}

async function newPair({ authority, commonName, dnsNames, ips, validDays }: ServingPairOptions): Promise<ServingPair> {
  const ca = await newCa({ commonName: authority, validDays });
  const { certPem, keyPem } = await newCertificate({ commonName, dnsNames, ips, usages: ["server"], validDays, ca });
  return { caPem: ca.certPem, certPem, keyPem };
}

parentPort?.on("message", (job: CertificateJob) => void answerTo(job).then((answer) => parentPort?.postMessage(answer)));
