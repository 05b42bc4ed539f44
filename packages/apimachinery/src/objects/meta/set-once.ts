/**
 * A value that is created after parts which refer to it, where two parts need each other. Reading it too early is an error, as is
 * setting it twice.
 */
export class SetOnce<T> {
  readonly #what: string;
  #value: { readonly set: T } | undefined;

  /** @param what names the value in errors */
  constructor(what: string) {
    this.#what = what;
  }

  set(value: T): void {
    if (this.#value !== undefined) throw new Error(`${this.#what} is set already`);
    this.#value = { set: value };
  }

  /** @throws Error before `set` */
  get(): T {
    if (this.#value === undefined) throw new Error(`${this.#what} is not available yet`);
    return this.#value.set;
  }

  /** undefined before `set`. */
  get current(): T | undefined {
    return this.#value?.set;
  }
}
