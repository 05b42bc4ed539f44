/**
 * Takes the place of `node:test` in worker.ts, because Node's own runner runs once per process and cannot run a file again. Supports what
 * this repository's tests use. After the first failure the remaining tests of the file are left out; clean-up still runs.
 */
import type nodeTest from "node:test";
import type { MockTracker } from "node:test";

type Step = () => unknown;
type Body = (t: Context) => unknown;
interface Options {
  readonly skip?: boolean | string;
  readonly todo?: boolean | string;
}

/** `process.getBuiltinModule` is not affected by loader hooks. */
const real = process.getBuiltinModule("node:test") as typeof nodeTest; // cast: the function's type covers a string of any module
const newMock = (): MockTracker => new (real.mock.constructor as new () => MockTracker)(); // cast: the class is not exported

class Suite {
  readonly before: Step[] = [];
  readonly after: Step[] = [];
  readonly beforeEach: Step[] = [];
  readonly afterEach: Step[] = [];
  readonly parts: ({ readonly name: string; readonly body: Body } | Suite)[] = [];
  readonly parent: Suite | undefined;

  constructor(parent?: Suite) {
    this.parent = parent;
  }
}

let current = new Suite();
let failure: string | undefined;
/** Resolves after an error outside of a test: the test that waits for what threw would wait forever. */
let uncaught = Promise.withResolvers<void>();

const note = (name: string, err: unknown): void => {
  failure ??= `${name}: ${err instanceof Error ? err.stack : String(err)}`;
};

/** Runs all steps, whatever happens. */
async function runEach(name: string, steps: readonly Step[]): Promise<void> {
  for (const step of steps)
    try {
      await step();
    } catch (err) {
      note(name, err);
    }
}

class Context {
  readonly name: string;
  readonly #after: Step[] = [];
  readonly #each: { readonly before: Step[]; readonly after: Step[] } = { before: [], after: [] };
  readonly #ending = new AbortController();
  readonly #subtests: Promise<void>[] = [];
  #mock: MockTracker | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get mock(): MockTracker {
    this.#mock ??= newMock();
    return this.#mock;
  }

  after(step: Step): void {
    this.#after.push(step);
  }

  beforeEach(step: Step): void {
    this.#each.before.push(step);
  }

  afterEach(step: Step): void {
    this.#each.after.push(step);
  }

  diagnostic(): void {}
  skip(): void {}
  todo(): void {}

  test(...args: unknown[]): Promise<void> {
    const { name, body, options } = parsed(args);
    if (options.skip || failure !== undefined) return Promise.resolve();
    const run = runEach(this.name, this.#each.before)
      .then(() => new Context(name).run(body))
      .then(() => runEach(this.name, this.#each.after));
    this.#subtests.push(run);
    return run;
  }

  async run(body: Body): Promise<void> {
    const ended = async (): Promise<void> => {
      await (body.length > 1 ? withCallback(body, this) : body(this));
      await Promise.all(this.#subtests);
    };
    await runEach(this.name, [() => Promise.race([ended(), uncaught.promise])]);
    this.#ending.abort();
    await runEach(this.name, this.#after);
    this.#mock?.restoreAll();
    this.#mock?.timers.reset();
  }
}

const withCallback = (body: Body, t: Context): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (err?: unknown): void => (err == null ? resolve() : reject(err));
    (body as (t: Context, done: (err?: unknown) => void) => unknown)(t, done); // cast: a body of two parameters takes a callback
  });

function parsed(args: readonly unknown[]): { name: string; body: Body; options: Options } {
  return {
    name: args.find((arg) => typeof arg === "string") ?? "",
    body: args.find((arg): arg is Body => typeof arg === "function") ?? (() => {}),
    options: args.find((arg): arg is Options => typeof arg === "object" && arg !== null) ?? {},
  };
}

function addTest(...args: unknown[]): void {
  const { name, body, options } = parsed(args);
  if (!options.skip) current.parts.push({ name, body });
}

function addSuite(...args: unknown[]): void {
  const { body, options } = parsed(args);
  if (options.skip) return;
  const suite = new Suite(current);
  current.parts.push(suite);
  current = suite;
  try {
    body(new Context(""));
  } finally {
    current = suite.parent ?? suite;
  }
}

const ofSuite =
  (kind: "before" | "after" | "beforeEach" | "afterEach") =>
  (step: Step): void => {
    current[kind].push(step);
  };

const skipped = (): void => {};
export const before = ofSuite("before");
export const after = ofSuite("after");
export const beforeEach = ofSuite("beforeEach");
export const afterEach = ofSuite("afterEach");
export const test = Object.assign(addTest, { skip: skipped, todo: skipped, only: addTest, before, after, beforeEach, afterEach });
export const it = test;
export const suite = Object.assign(addSuite, { skip: skipped, todo: skipped, only: addSuite });
export const describe = suite;
export const mock: MockTracker = newMock();
export default test;

async function runSuite(self: Suite): Promise<void> {
  await runEach("before", self.before);
  const above = (kind: "beforeEach" | "afterEach"): Step[] => {
    const all: Step[] = [];
    for (let at: Suite | undefined = self; at !== undefined; at = at.parent) all.unshift(...at[kind]);
    return all;
  };
  // The list grows when a test registers another.
  for (const part of self.parts) {
    if (failure !== undefined) break;
    if (part instanceof Suite) {
      await runSuite(part);
      continue;
    }
    await runEach(part.name, above("beforeEach"));
    if (failure === undefined) await new Context(part.name).run(part.body);
    await runEach(part.name, above("afterEach"));
  }
  await runEach("after", self.after);
}

/** Runs the tests that `load` registers. @returns the first failure */
export async function runFile(load: () => Promise<unknown>): Promise<string | undefined> {
  current = new Suite();
  failure = undefined;
  const root = current;
  uncaught = Promise.withResolvers();
  const onError = (err: unknown): void => {
    note("uncaught", err);
    uncaught.resolve();
  };
  process.on("uncaughtException", onError).on("unhandledRejection", onError);
  try {
    await load();
    if (root.parts.length === 0) note("load", new Error("no test was registered"));
    await runSuite(root);
    // Rejections that nobody handles are reported in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
  } catch (err) {
    note("load", err);
  } finally {
    process.off("uncaughtException", onError).off("unhandledRejection", onError);
    mock.restoreAll();
    mock.timers.reset();
  }
  return failure;
}
