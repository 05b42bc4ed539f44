import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTraceCollector } from "../../testing/trace-collector.ts";
import { newSpanExporter } from "./exporter.ts";
import type { Span } from "./otlp.ts";

const aSpan = (name: string): Span => ({
  ...{ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", name, kind: "server" },
  ...{ start: 0, end: 1, attributes: {}, failed: false },
});

async function anExporter(t: TestContext) {
  const collector = await startTraceCollector();
  t.after(collector.stop);
  const clock = newFakeClock();
  const exporter = newSpanExporter({ endpoint: collector.endpoint, service: {}, clock, log: discardLogger });
  const names = (): string[] => collector.spans.map(({ name }) => name);
  return { clock, exporter, names };
}

test("spans are exported every five seconds, those of later rounds too, and the rest at the end", async (t) => {
  const { clock, exporter, names } = await anExporter(t);
  for (const round of ["first", "second"]) {
    const before = names().length;
    exporter.add(aSpan(round));
    await clock.advance(4_999);
    assert.equal(names().length, before);
    await clock.advance(1);
    await waitFor(() => names().length > before, { what: "the export" });
  }
  exporter.add(aSpan("last"));
  await exporter.close();
  assert.deepEqual([names(), clock.waiting], [["first", "second", "last"], 0]);
});

test("512 spans are exported at once; while they are sent 2,048 are kept, and no more", async (t) => {
  const { exporter, names } = await anExporter(t);
  for (let i = 0; i < 512 + 2_048 + 10; i++) exporter.add(aSpan(`${i}`));
  await waitFor(() => names().length >= 512, { what: "the export" });
  await exporter.close();
  assert.deepEqual(
    names(),
    Array.from({ length: 512 + 2_048 }, (_, i) => `${i}`),
  );
});

test("spans that cannot be exported are dropped, which is logged, and the next ones are exported", async (t) => {
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const clock = newFakeClock();
  const exporter = newSpanExporter({ endpoint: `127.0.0.1:${await freePort()}`, service: {}, clock, log });
  t.after(() => exporter.close());
  for (const count of [1, 2]) {
    exporter.add(aSpan("lost"));
    await clock.advance(5_000);
    await waitFor(() => errors.length === count, { what: "the failure" });
  }
  assert.equal(errors[0], "traces were not exported");
});
