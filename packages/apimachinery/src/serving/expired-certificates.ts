import { expiryText } from "../objects/errors/certificate-expiry.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { ServingCertificate } from "./tls-options.ts";

interface ExpiryLog {
  /** Checks all certificates: called after a reload and after a failed handshake. */
  look(): void;
  close(): void;
}

const hourMs = 3_600_000;
const atMostEveryMs = 60_000;

/**
 * Logs serving certificates outside their validity period, since clients only abort their handshakes. Checks at the start, once
 * an hour and on `look`; logs at most once a minute.
 */
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
