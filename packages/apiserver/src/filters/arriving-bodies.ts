import { tooManyRequests } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

/** A request keeps its seat so long while its body arrives. */
const promptMs = 50;
/** Size of all bodies together whose requests hold no seat. */
const mostBytes = 64 * 1024 * 1024;
const checkEveryMs = 100;

/** What a limiter of concurrent requests has given to a request. */
export interface Seat {
  /** May be called again. */
  release(): void;
  /** Waits for a seat. @throws StatusError TooManyRequests; the reason of the request's end */
  acquire(): Promise<void>;
}

interface Arriving {
  readonly exchange: Exchange;
  refuse(): void;
}

/**
 * Request bodies that arrive slowly. Their requests hold no seat meanwhile, so that clients that send nothing do not delay others.
 * The oldest ones are refused when all together take too much memory.
 */
export class ArrivingBodies {
  readonly #clock: Clock;
  readonly #mostBytes: number;
  /** Oldest first. */
  readonly #arriving = new Set<Arriving>();
  #checks: Timer | undefined;

  constructor(clock: Clock, most = mostBytes) {
    this.#clock = clock;
    this.#mostBytes = most;
  }

  /**
   * Waits for the body without the seat, unless it arrives at once.
   * @returns the body, with a seat
   * @throws StatusError TooManyRequests; errors of the body and of `acquire`
   */
  async receive(body: Promise<Buffer>, exchange: Exchange, seat: Seat): Promise<Buffer> {
    if (await this.#isPrompt(body)) return body;
    seat.release();
    const bytes = await this.#without(body, exchange);
    await seat.acquire();
    return bytes;
  }

  #isPrompt(body: Promise<Buffer>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = this.#clock.after(promptMs, () => resolve(false));
    const settled = (): void => {
      timer.cancel();
      resolve(true);
    };
    body.then(settled, settled);
    return promise;
  }

  async #without(body: Promise<Buffer>, exchange: Exchange): Promise<Buffer> {
    const { promise: refused, reject } = Promise.withResolvers<never>();
    const arriving: Arriving = {
      exchange,
      refuse: () => reject(tooManyRequests("too many request bodies arrive slowly, and this one was the oldest", 1)),
    };
    this.#arriving.add(arriving);
    this.#checks ??= this.#clock.every(checkEveryMs, () => this.#check());
    try {
      return await Promise.race([body, refused]);
    } finally {
      this.#arriving.delete(arriving);
      if (this.#arriving.size === 0) {
        this.#checks?.cancel();
        this.#checks = undefined;
      }
    }
  }

  #check(): void {
    let bytes = 0;
    for (const { exchange } of this.#arriving) bytes += exchange.bodyBytes;
    for (const arriving of this.#arriving) {
      if (bytes <= this.#mostBytes) return;
      bytes -= arriving.exchange.bodyBytes;
      arriving.refuse();
    }
  }
}
