import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Certificates } from "./certificates.ts";

/** How often Secrets are read again: a renewed certificate is used after at most this time. */
const periodMs = 30_000;

interface CertificateReaderOptions {
  readonly certificates: Certificates;
  /** After each round. */
  readonly onRead: () => void;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Reads Secrets when an Ingress first names them, and again periodically. */
export class CertificateReader {
  readonly #options: CertificateReaderOptions;
  #round: Promise<void> | undefined;
  /** Why the last round failed. */
  problem: string | undefined;

  constructor(options: CertificateReaderOptions) {
    this.#options = options;
  }

  /** Resolves after a round that began after this call. Never rejects. */
  async read(): Promise<void> {
    await this.#round;
    this.#round ??= this.#readAll().finally(() => {
      this.#round = undefined;
    });
    await this.#round;
  }

  /** Resolves when the signal is aborted. */
  async run(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal).catch(() => {});
      if (!signal.aborted) await this.read();
    }
  }

  async #readAll(): Promise<void> {
    const { certificates, onRead, log, signal } = this.#options;
    try {
      await certificates.load(signal);
      this.problem = undefined;
    } catch (err) {
      if (signal.aborted) return;
      if (this.problem === undefined) log.error("cannot read certificates", err);
      this.problem = causesOf(err);
    }
    onRead();
  }
}
