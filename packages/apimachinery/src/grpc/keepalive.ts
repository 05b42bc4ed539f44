import type { Clock, Timer } from "../clock/clock.ts";

export interface KeepaliveOptions {
  readonly clock: Clock;
  /** Period of the check. */
  readonly checkMs: number;
  /** A server that is silent for this time while unary calls are pending is pinged. */
  readonly silenceMs: number;
  /** The same while only streams are open, which may be idle for long. */
  readonly streamSilenceMs: number;
  /** A server that does not answer a ping within this time is given up. */
  readonly pingTimeoutMs: number;
  /** The least time between pings: servers treat more frequent ones as abuse. */
  readonly leastPingMs: number;
}

/** Pings a server that is silent while calls are pending. One for each connection. */
export class Keepalive {
  readonly #options: KeepaliveOptions | undefined;
  readonly #ping: (answered: () => void) => void;
  readonly #onSilent: () => void;
  #timer: Timer | undefined;
  /** Unary calls with an outstanding response. */
  #calls = 0;
  #streams = 0;
  /** Time of the last received data, or of the first outstanding call. */
  #heardAt = Number.NEGATIVE_INFINITY;
  #pingedAt = Number.NEGATIVE_INFINITY;
  #isAnswered = true;

  /**
   * @param options undefined: no pings
   * @param ping sends a ping, and calls `answered` when the server has answered
   * @param onSilent called when the server does not answer
   */
  constructor(options: KeepaliveOptions | undefined, ping: (answered: () => void) => void, onSilent: () => void) {
    this.#options = options;
    this.#ping = ping;
    this.#onSilent = onSilent;
  }

  start(): void {
    this.#timer = this.#options?.clock.every(this.#options.checkMs, () => this.#check());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  heard(): void {
    if (this.#options !== undefined) this.#heardAt = this.#options.clock.monotonic();
  }

  callBegan(): void {
    if (this.#calls++ > 0 || this.#options === undefined) return;
    // The silence before the first call says nothing about the server.
    const { clock, silenceMs } = this.#options;
    this.#heardAt = Math.max(this.#heardAt, clock.monotonic() - silenceMs / 2);
  }

  callEnded(): void {
    this.#calls--;
  }

  streamBegan(): void {
    this.#streams++;
  }

  streamEnded(): void {
    this.#streams--;
  }

  #check(): void {
    const { clock, silenceMs, streamSilenceMs, pingTimeoutMs, leastPingMs } = this.#options as KeepaliveOptions;
    const now = clock.monotonic();
    if (!this.#isAnswered && now - this.#pingedAt >= pingTimeoutMs) {
      this.stop();
      this.#onSilent();
      return;
    }
    if (this.#calls === 0 && this.#streams === 0) return;
    const patienceMs = this.#calls > 0 ? silenceMs : streamSilenceMs;
    if (!this.#isAnswered || now - this.#heardAt < patienceMs || now - this.#pingedAt < leastPingMs) return;
    this.#pingedAt = now;
    this.#isAnswered = false;
    this.#ping(() => {
      this.#isAnswered = true;
    });
  }
}
