import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../clock/fake-clock.ts";
import { newSplitWriter } from "./split-streams.ts";

function setUp(bufferBytes: number) {
  const clock = newFakeClock();
  const [stdout, stderr] = [[] as string[], [] as string[]];
  const streams = { toStdout: (text: string) => void stdout.push(text), toStderr: (text: string) => void stderr.push(text) };
  return { clock, stdout, stderr, write: newSplitWriter({ ...streams, bufferBytes, flushMs: 5_000, clock }) };
}

test("--log-json-split-stream: errors go to stderr, the rest to stdout, each at once", () => {
  const { stdout, stderr, write } = setUp(0);
  write("info\n", "I");
  write("warning\n", "W");
  write("error\n", "E");
  write("fatal\n", "F");
  assert.deepEqual(
    [stdout, stderr],
    [
      ["info\n", "warning\n"],
      ["error\n", "fatal\n"],
    ],
  );
});

test("--log-json-info-buffer-size: information waits until it is enough, or for --log-flush-frequency, or the end", async () => {
  const { clock, stdout, stderr, write } = setUp(10);
  write("12345\n", "I");
  write("error\n", "E");
  assert.deepEqual([stdout, stderr], [[], ["error\n"]]);
  write("67890\n", "I");
  assert.deepEqual(stdout, ["12345\n67890\n"]);
  write("late\n", "I");
  await clock.advance(4_999);
  assert.equal(stdout.length, 1);
  await clock.advance(1);
  assert.equal(stdout[1], "late\n");
  write("last\n", "I");
  write.flush();
  write.flush();
  assert.equal(stdout[2], "last\n");
  assert.equal(clock.waiting, 0);
});

test("a buffer that is exactly full waits", () => {
  const { stdout, write } = setUp(6);
  write("12345\n", "I");
  assert.deepEqual(stdout, []);
  write("\n", "I");
  assert.deepEqual(stdout, ["12345\n\n"]);
});
