import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure, Interrupted, newProgress, UsageFailure } from "./failure.ts";
import { interruptible } from "./interrupt.ts";

const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const counts = (): number[] => names.map((name) => process.listenerCount(name));

for (const [name, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const)
  test(`${name} aborts the work once, says so each time, and ends with ${code}`, async (t) => {
    const said = t.mock.method(process.stderr, "write", () => true);
    const before = counts();
    let aborts = 0;
    const work = interruptible(async (signal) => {
      assert.deepEqual(
        counts(),
        before.map((count) => count + 1),
      );
      signal.addEventListener("abort", () => aborts++);
      process.emit(name, name);
      process.emit("SIGTERM", "SIGTERM");
      const { reason } = signal;
      assert.deepEqual([reason.message, reason.exitCode], [`stopped by ${name}`, code]);
      signal.throwIfAborted();
    });
    await assert.rejects(work, (err) => err instanceof Interrupted && err.exitCode === code);
    assert.equal(aborts, 1);
    const text = "cox: stopping; what this command has started is being stopped too\n";
    assert.deepEqual(
      said.mock.calls.map(({ arguments: [line] }) => line),
      [text, text],
    );
    assert.deepEqual(counts(), before, "no listener is left");
  });

test("work that is not interrupted has its result", async () => {
  const before = counts();
  assert.equal(await interruptible(async () => 7), 7);
  assert.deepEqual(counts(), before);
});

test("failures have the exit code 1, wrong command lines 2", () => {
  assert.deepEqual([new Failure("x").exitCode, new Failure("x", 9).exitCode, new UsageFailure("x").exitCode], [1, 9, 2]);
});

test("a step is printed with the time since the begin, and none after an interruption", (t) => {
  const controller = new AbortController();
  const progress = newProgress(controller.signal);
  const printed: string[] = [];
  const own = process.stdout.write.bind(process.stdout);
  t.mock.method(process.stdout, "write", (text: string | Uint8Array) =>
    typeof text === "string" ? printed.push(text) > 0 : own(text),
  );
  progress.step("started etcd");
  controller.abort(new Interrupted("SIGINT"));
  assert.throws(() => progress.step("started more"), { message: "stopped by SIGINT" });
  assert.equal(printed.length, 1);
  assert.match(printed[0] ?? "", /^ +0\.\ds {2}started etcd\n$/);
});
