import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { CertificateReader } from "./certificate-reader.ts";
import type { Certificates } from "./certificates.ts";

/** A reader whose rounds end when the test says so. */
function reading(t: TestContext) {
  const clock = newFakeClock();
  const ending = new AbortController();
  t.after(() => ending.abort());
  const rounds: PromiseWithResolvers<void>[] = [];
  const load = (): Promise<void> => {
    const round = Promise.withResolvers<void>();
    rounds.push(round);
    return round.promise;
  };
  const errors: unknown[] = [];
  const seen = { reads: 0 };
  const reader = new CertificateReader({
    certificates: { load } as unknown as Certificates,
    onRead: () => void seen.reads++,
    log: { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) },
    ...{ clock, signal: ending.signal },
  });
  return { clock, ending, rounds, errors, seen, reader };
}

test("a call that comes during a round waits for the next one, which all such calls share", async (t) => {
  const { rounds, reader, seen } = reading(t);
  const ended: string[] = [];
  const read = (name: string): void => void reader.read().then(() => ended.push(name));
  read("first");
  await settle(3);
  assert.equal(rounds.length, 1);
  read("second");
  read("third");
  await settle(3);
  assert.equal(rounds.length, 1);
  rounds[0]?.resolve();
  await settle(3);
  assert.deepEqual([ended, rounds.length, seen.reads], [["first"], 2, 1]);
  rounds[1]?.resolve();
  await settle(3);
  assert.deepEqual([ended.toSorted(), rounds.length, seen.reads], [["first", "second", "third"], 2, 2]);
  read("fourth");
  await settle(3);
  assert.equal(rounds.length, 3);
});

test("a failure is logged once and known until a round succeeds; each round is reported", async (t) => {
  const { rounds, reader, errors, seen } = reading(t);
  const failing = new Error("no right");
  const read = async (end: (round: PromiseWithResolvers<void>) => void): Promise<void> => {
    const round = reader.read();
    await settle(1);
    end(rounds.at(-1) as PromiseWithResolvers<void>);
    await round;
  };
  for (let i = 0; i < 2; i++) await read(({ reject }) => reject(failing));
  assert.deepEqual([errors, reader.problem, seen.reads], [[failing], "no right", 2]);
  await read(({ resolve }) => resolve());
  assert.deepEqual([reader.problem, seen.reads], [undefined, 3]);
  await read(({ reject }) => reject(failing));
  assert.equal(errors.length, 2, "another failure");
});

test("Secrets are read again every 30 s until the end, which is no failure", async (t) => {
  const { clock, ending, rounds, reader, errors, seen } = reading(t);
  const running = reader.run();
  await clock.advance(29_999);
  assert.equal(rounds.length, 0);
  await clock.advance(1);
  assert.equal(rounds.length, 1);
  rounds[0]?.resolve();
  await clock.advance(30_000);
  assert.equal(rounds.length, 2);
  ending.abort(new Error("the part ends"));
  rounds[1]?.reject(ending.signal.reason);
  await running;
  assert.deepEqual([errors, reader.problem, seen.reads, clock.waiting], [[], undefined, 1, 0]);
});
