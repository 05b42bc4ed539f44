import { Transform } from "node:stream";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

/** Interval in ms covered by one portion, to smooth low rates. */
const portionMs = 100;

/**
 * A transform that limits throughput by backpressure.
 * Source: --max-connection-bytes-per-sec; k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, MaxBytesPerSec
 */
export function newThrottle(bytesPerSecond: number, clock: Clock): Transform {
  const portionBytes = Math.max(1, Math.floor((bytesPerSecond * portionMs) / 1000));
  /** Time in ms at which the bytes passed so far are within the limit. */
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
