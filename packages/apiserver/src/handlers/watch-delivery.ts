/**
 * Delivers watch events to a client with callbacks; a promise per event for each of thousands of watchers
 * would be too much garbage.
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { WatchEvent, WatchStream } from "../storage/storage.ts";
import type { Batch, Framer } from "./watch-framer.ts";

/** The destination of events. */
export interface Sink {
  /** @returns false when the transport's buffer is full */
  write(batch: Batch): boolean;
  /** Rejects when the client has disconnected. */
  drained(): Promise<void>;
  end(): void;
}

interface Delivery {
  readonly stream: WatchStream;
  readonly sink: Sink;
  readonly framer: Framer;
  readonly timers: Pick<Clock, "after">;
  readonly turns: Turns;
  /** Called once, when the initial events are written. */
  readonly started?: (() => void) | undefined;
}

/** A client whose buffers stay full for this long is disconnected. */
const stalledAfterMs = 60_000;

/**
 * Writes all events until the stream ends.
 * @returns false when the client disconnected or stalled: its connection must be destroyed instead of ended
 * @throws errors of the framer
 */
export function deliver({ stream, sink, framer, timers, turns, ...delivery }: Delivery): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  let { started } = delivery;
  /** Events taken from the stream that are not framed yet. */
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
        turns.transferred(batch.bytes.length);
        const turn = turns.next();
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
