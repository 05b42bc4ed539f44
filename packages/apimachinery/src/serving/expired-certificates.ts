import type { Clock } from "../clock/clock.ts";
import { expiryText } from "../errors/certificate-expiry.ts";
import type { Logger } from "../logging/logger.ts";
import type { ServingCertificate } from "./tls-options.ts";

export interface ExpiryLog {
  /** At the start, after files were read again, and when a client broke a handshake off. */
  look(): void;
  close(): void;
}

const hourMs = 3_600_000;
const atMostEveryMs = 60_000;

/** Says in the log which serving certificates are not valid at this time: clients only break their handshakes off. Once an hour, and when asked. */
export function newExpiryLog(certificates: () => readonly ServingCertificate[], log: Logger, clock: Clock): ExpiryLog {
  let saidAt = Number.NEGATIVE_INFINITY;
  const look = (): void => {
    const texts = certificates().flatMap(({ certificate, file }) => expiryText(certificate, clock.now(), file) ?? []);
    if (texts.length === 0 || clock.monotonic() - saidAt < atMostEveryMs) return;
    saidAt = clock.monotonic();
    log.error("Clients cannot trust this server", new Error(`serving ${texts.join("; ")}`));
  };
  look();
  const timer = clock.every(hourMs, look);
  return { look, close: () => timer.cancel() };
}
