/** From a stream of events to a client, by callbacks: a promise for each event at each of a thousand watchers is garbage. */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { loopSlice } from "@coxswain/apimachinery/event-loop/loop-slice";
import type { WatchEvent, WatchStream } from "../storage/storage.ts";
import type { Batch, Framer } from "./watch-frames.ts";

/** Where events go. */
export interface Sink {
  /** @returns false when the transport's buffer is full. */
  write(batch: Batch): boolean;
  /** Rejects when the client is gone. */
  drained(): Promise<void>;
  end(): void;
}

export interface Delivery {
  readonly stream: WatchStream;
  readonly sink: Sink;
  readonly framer: Framer;
  readonly timers: Pick<Clock, "after">;
  /** Called once, when all that was there at the start is written. */
  readonly started?: (() => void) | undefined;
}

/** A client whose buffers stay full for so long is given up. */
const stalledAfterMs = 60_000;

/**
 * Writes all events until the stream ends.
 * @returns false when the client is gone or stopped reading: its connection has to be broken, not ended
 * @throws what the framer throws
 */
export function deliver({ stream, sink, framer, timers, ...delivery }: Delivery): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  let { started } = delivery;
  /** Taken from the stream and not framed yet. */
  let rest: readonly WatchEvent[] = [];

  function goOn(): void {
    try {
      for (;;) {
        const events = rest.length > 0 ? rest : stream.take();
        if (events.length === 0) {
          started?.();
          started = undefined;
          if (stream.ended) resolve(true);
          else stream.whenReady(goOn);
          return;
        }
        const batch = framer(events);
        rest = batch.frames.length < events.length ? events.slice(batch.frames.length) : [];
        if (!sink.write(batch)) {
          waitForRoom();
          return;
        }
        if (rest.length === 0) continue;
        loopSlice.wrote(batch.bytes.length);
        const turn = loopSlice.next();
        if (turn === undefined) continue;
        void turn.then(goOn);
        return;
      }
    } catch (err) {
      reject(err);
    }
  }

  function waitForRoom(): void {
    const timer = timers.after(stalledAfterMs, () => resolve(false));
    sink.drained().then(
      () => {
        timer.cancel();
        goOn();
      },
      () => {
        timer.cancel();
        resolve(false);
      },
    );
  }

  goOn();
  return promise.finally(() => stream.stop());
}
