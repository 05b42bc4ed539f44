import { Transform } from "node:stream";
import type { Clock } from "@coxswain/apimachinery/clock/clock";

/** Bytes go through in portions of this much time, so that a slow limit does not come in bursts. */
const portionMs = 100;

/**
 * Lets so many bytes a second through, the rest waits at its source.
 * Source: --max-connection-bytes-per-sec; k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, MaxBytesPerSec
 */
export function newThrottle(bytesPerSecond: number, clock: Clock): Transform {
  const portionBytes = Math.max(1, Math.floor((bytesPerSecond * portionMs) / 1000));
  /** When all that was let through would have come at the limit. */
  let paidUntil = clock.monotonic();
  let timer: { cancel(): void } | undefined;

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let sent = 0;
      const next = (): void => {
        const portion = chunk.subarray(sent, sent + portionBytes);
        sent += portion.length;
        paidUntil = Math.max(paidUntil, clock.monotonic()) + (portion.length / bytesPerSecond) * 1000;
        this.push(portion);
        timer = clock.after(paidUntil - clock.monotonic(), () => (sent < chunk.length ? next() : done()));
      };
      next();
    },
    destroy(err, done) {
      timer?.cancel();
      done(err);
    },
  });
}
