import { type Limit, quantities } from "./limits.ts";
import { closedLoop } from "./load.ts";
import type { Row } from "./row.ts";
import { create, patch, remove, spareCreations, spareObjects, standingObjects, update, type WrittenKind } from "./written.ts";

const limits: readonly Limit[] = [
  { quantity: quantities.cpu, atMost: 0.7 },
  { quantity: quantities.perSecond, atLeast: 1.2 },
];
/** Maximum number of objects created in one round. */
const mostCreated = 5_000;
/** Updates and patches cycle through this many objects, more than there are concurrent writers. */
const standing = 500;
/** Bodies prepared per second; beyond that they are generated during the measurement. */
const creationsPerSecond = 5_000;
/** Objects prepared for deletion per second. */
const deletionsPerSecond = 2_000;

/** Creates, updates, patches and deletes of pods (3 kB) and config maps, with 16 and 64 clients. */
export const writeRows: readonly Row[] = (["pods", "configmaps"] as const).flatMap((kind) =>
  [16, 64].flatMap((concurrency) => [
    row("create", kind, concurrency, {
      prepare: async (stage, seconds) =>
        spareCreations(stage, kind, Math.min(mostCreated, Math.ceil(seconds * creationsPerSecond))),
      run: (stage, seconds) => closedLoop(() => create(stage, kind), { concurrency, seconds, maxOperations: mostCreated }),
    }),
    changeRow("update", kind, concurrency, update),
    changeRow("patch", kind, concurrency, patch),
    row("delete", kind, concurrency, {
      prepare: async (stage, seconds) => void (await spareObjects(stage, kind, Math.ceil(seconds * deletionsPerSecond))),
      run: async (stage, seconds) => {
        const spare = await spareObjects(stage, kind, 0);
        const next = () => remove(stage, spare.pop()!);
        return closedLoop(next, { concurrency, seconds, maxOperations: spare.length });
      },
    }),
  ]),
);

function row(verb: string, kind: WrittenKind, concurrency: number, rest: Pick<Row, "prepare" | "run">): Row {
  return { name: `${verb} ${kind}, ${concurrency} at once`, limits, ...rest };
}

function changeRow(verb: string, kind: WrittenKind, concurrency: number, change: typeof update): Row {
  return row(verb, kind, concurrency, {
    prepare: async (stage) => void (await standingObjects(stage, kind, standing)),
    run: async (stage, seconds) => {
      const objects = await standingObjects(stage, kind, standing);
      return closedLoop((turn) => change(stage, objects[turn % standing]!, turn), { concurrency, seconds });
    },
  });
}
