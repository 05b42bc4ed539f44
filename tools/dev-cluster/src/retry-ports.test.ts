import assert from "node:assert/strict";
import { test } from "node:test";
import { type StartSteps, startOnFreePorts } from "./retry-ports.ts";

/** @param rounds by attempt: the error with which the start fails, and the ports that are taken afterwards */
function stepsWith(rounds: { fails?: string; taken?: number[] }[], signal = new AbortController().signal) {
  const said: string[] = [];
  let decided = 0;
  const steps: StartSteps<number> = {
    decide: async () => ++decided,
    start: async (chosen) => {
      const reason = rounds[chosen - 1]?.fails;
      if (reason !== undefined) throw new Error(reason);
    },
    takenPorts: async (chosen) => rounds[chosen - 1]?.taken ?? [],
    say: (text) => void said.push(text),
    signal,
  };
  return { steps, said, decided: () => decided };
}

const taken = (port: number) => ({ fails: `in use: ${port}`, taken: [port] });

test("a start that succeeds is the only one", async () => {
  const { steps, said, decided } = stepsWith([{ taken: [1] }]);
  assert.equal(await startOnFreePorts(steps), 1);
  assert.equal(decided(), 1);
  assert.deepEqual(said, []);
});

test("settings are chosen again when a chosen port was taken meanwhile, also a second time", async () => {
  const { steps, said } = stepsWith([taken(12_390), taken(12_400), {}]);
  assert.equal(await startOnFreePorts(steps), 3);
  assert.deepEqual(said, [
    "port 12390 was taken by another program before the cluster could use it; trying others",
    "port 12400 was taken by another program before the cluster could use it; trying others",
  ]);
});

test("the third failure is reported unchanged", async () => {
  const { steps, said, decided } = stepsWith([taken(1), taken(2), taken(3), {}]);
  await assert.rejects(startOnFreePorts(steps), /^Error: in use: 3$/);
  assert.equal(decided(), 3);
  assert.equal(said.length, 2);
});

test("a failure with all ports free is reported at once", async () => {
  const { steps, said, decided } = stepsWith([{ fails: "no space left on device" }, {}]);
  await assert.rejects(startOnFreePorts(steps), /no space left on device/);
  assert.equal(decided(), 1);
  assert.deepEqual(said, []);
});

test("an interrupted start is not repeated", async () => {
  const { steps, decided } = stepsWith([taken(1), {}], AbortSignal.abort());
  await assert.rejects(startOnFreePorts(steps), /in use: 1/);
  assert.equal(decided(), 1);
});

test("a failing choice in a later attempt is reported, with its own reason", async () => {
  const { steps } = stepsWith([taken(1)]);
  let calls = 0;
  const decide = async (): Promise<number> => {
    if (++calls === 2) throw new Error("no port is free");
    return calls;
  };
  await assert.rejects(startOnFreePorts({ ...steps, decide }), /no port is free/);
});
