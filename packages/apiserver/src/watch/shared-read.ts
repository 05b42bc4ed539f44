/** Reads that run at the same time; requests beyond them share the next one. */
const concurrentReads = 4;

/**
 * Answers many requests with few reads. A read is valid only for requests made before it began, so those that arrive while
 * `concurrentReads` reads run share the one that begins next.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #running = 0;
  #next: PromiseWithResolvers<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** @returns the result of a read that begins after the call @throws the read's error */
  get(): Promise<T> {
    if (this.#next === undefined) {
      this.#next = Promise.withResolvers();
      // Deferred by one event-loop turn, so that all requests of this turn share the read.
      if (this.#running < concurrentReads) setImmediate(() => this.#start());
    }
    return this.#next.promise;
  }

  #start(): void {
    const requested = this.#next;
    if (requested === undefined || this.#running >= concurrentReads) return;
    this.#next = undefined;
    this.#running++;
    this.#read()
      .then(requested.resolve, requested.reject)
      .finally(() => {
        this.#running--;
        if (this.#next !== undefined) this.#start();
      });
  }
}
